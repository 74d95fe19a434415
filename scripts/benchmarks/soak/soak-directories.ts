import { execFileSync } from "node:child_process"
import { cpSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { createOpencodeClient } from "@opencode-ai/sdk/client"
import { openTestLedger } from "../../../test/support/test-ledger.ts"
import type { Arm } from "./arm.ts"

/** Directories whose agents may pass work over. */
const PASSING = 4
const NOT_COPIED = /\/(?:\.git|baton|bundle-plugins|state)$/

export const EXTRAS = ["correct", "hand over", "read", "pass over", "step"] as const
type Extra = (typeof EXTRAS)[number]

export type SoakDirectory = {
  readonly path: string
  /** A new session with a turn and a compaction, and between them with what some do and others do not. */
  work(number: number, extras: readonly Extra[]): Promise<void>
  deleteAll(): Promise<void>
}

/** A repository of its own, so that OpenCode takes it for another project. */
const addDirectory = (from: string, index: number): string => {
  const path = index === 0 ? from : `${from}-${index}`
  if (index > 0) {
    cpSync(from, path, { recursive: true, verbatimSymlinks: true, filter: (source) => !NOT_COPIED.test(source) })
    writeFileSync(join(path, "README.md"), `# Project ${index}\n`)
    const git = (...args: string[]) => execFileSync("git", ["-C", path, ...args], { stdio: "pipe" })
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("-c", "user.name=Soak", "-c", "user.email=soak@example.invalid", "commit", "-q", "-m", "start")
  }
  if (index < PASSING) writeFileSync(join(path, ".opencode", "pass-over.json"), "{}\n")
  return path
}

const openDirectory = (arm: Arm, index: number, taskID: string): SoakDirectory => {
  const path = addDirectory(arm.project.directory, index)
  const { session } = createOpencodeClient({ baseUrl: arm.server.url, directory: path })
  const say = async (id: string, text: string): Promise<void> => {
    const { data, error } = await session.prompt({ path: { id }, body: { parts: [{ type: "text", text }] } })
    if (error || data?.info.error)
      throw new Error(`a turn in ${basename(path)} failed: ${JSON.stringify(error ?? data?.info.error)}`)
  }
  let newest = ""
  const extra: Record<Extra, (id: string) => Promise<unknown>> = {
    correct: (id) => say(id, "No, use tabs instead of spaces in the formatter."),
    "hand over": (id) => session.command({ path: { id }, body: { command: "handoff", arguments: "finish it" } }),
    read: (id) => say(id, `Read ${newest}.`),
    "pass over": (id) => say(id, "DELEGATE the review."),
    step: (id) => say(id, "Take a step."),
  }
  return {
    path,
    work: async (number, extras) => {
      const id = (await session.create({ body: { title: `Session ${number}` } })).data?.id ?? ""
      const words = `Begin with ${number}.`
      await say(id, number % 2 === 0 ? `# Worker\n\nTask: ${taskID}\n\n${words}\n` : words)
      for (const name of extras) if (arm.isWithBundle || name !== "hand over") await extra[name](id)
      const { error } = await session.summarize({
        path: { id },
        body: { providerID: "scripted", modelID: "model" },
      })
      if (error) throw new Error(`a compaction failed: ${JSON.stringify(error)}`)
      newest = id
    },
    deleteAll: async () => {
      for (const { id, parentID } of (await session.list()).data ?? [])
        if (parentID === undefined) await session.delete({ path: { id } })
      const left = (await session.list()).data?.length ?? -1
      if (left !== 0) throw new Error(`expected no session in ${basename(path)}, found ${left}`)
    },
  }
}

/** @param count directories, the arm's own project the first of them */
export const openDirectories = async (arm: Arm, count: number): Promise<SoakDirectory[]> => {
  const task = { title: "Work beside others", specification: "Mind your own.", definitionOfDone: "Nothing is left." }
  const taskID = await openTestLedger(arm.project, arm.binary).addTask(task)
  return Array.from({ length: count }, (_, index) => openDirectory(arm, index, taskID))
}
