import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  ALL_LINES,
  bash,
  type ModelReply,
  newestWords,
  openSharedTask,
  openTaskProject,
  type SharedTask,
  testsOnce,
} from "../../support/index.ts"
import { isLine2 } from "../../support/opencode/opencode-binary.ts"
import { onEvents } from "../sessions.ts"

const MAIN = ".opencode/baton/ledger/embedded/main.ts"
const STATE = ".opencode/state/outbox/1.json"

/** Does what the user's newest message says, once: `RUN command`, or `WRITE path`, which it reads first as OpenCode wants it. */
const obedient = (request: Parameters<typeof newestWords>[0]): ModelReply => {
  const words = newestWords(request)
  const steps = words.split("[tool]").length - 1
  const [, path] = /\bWRITE (\S+)/.exec(words) ?? []
  if (path !== undefined && steps === 0) return { tool: "read", input: { filePath: path } }
  if (path !== undefined && steps === 1) return { tool: "write", input: { filePath: path, content: "evil\n" } }
  const [, command] = /\bRUN (.+)/.exec(words) ?? []
  return command === undefined || steps > 0 ? { text: "Done." } : bash(command)
}

const open = (binary: SharedTask["binary"], permission: unknown) =>
  openSharedTask(binary, obedient, { config: { permission } })

const CONFINED = { "*": "deny", read: "allow", edit: "allow", bash: "deny", external_directory: "deny" }

describe.each(ALL_LINES)("OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  const write = async (task: SharedTask, path: string) => {
    const file = join(task.project.directory, path)
    const read = () => (existsSync(file) ? readFileSync(file, "utf8") : undefined)
    const before = read()
    await task.say(`WRITE ${file}`)
    return before !== read()
  }

  test(
    promised("guard.A1", "an agent that may edit and run no shell changes no program, plugin or state of Baton's"),
    async () => {
      const task = await open(binary, CONFINED)
      symlinkSync(".opencode/baton", join(task.project.directory, "library"))
      for (const path of [
        MAIN,
        ".opencode/plugins/evil.ts",
        STATE,
        "library/ledger/embedded/main.ts",
        ".opencode/Baton/x.ts",
      ]) {
        const isWritten = await write(task, path)
        expect({ path, isWritten }).toEqual({ path, isWritten: false })
      }
      expect(await write(task, "src/own.ts")).toBe(true)
    },
  )

  test(
    promised(["guard.A1", "guard.A2"], "a person who once says always for edits has not said it for Baton's files"),
    async () => {
      const task = await open(binary, { "*": "allow", edit: { "*": "ask" } })
      const asked: string[] = []
      await onEvents(task, async (type, { id, patterns, sessionID }) => {
        if (type !== "permission.asked") return
        asked.push(JSON.stringify(patterns))
        const path = { id: String(sessionID), permissionID: String(id) }
        await task.client.postSessionIdPermissionsPermissionId({ path, body: { response: "always" } })
      })
      expect(await write(task, "src/own.ts")).toBe(true)
      for (const path of [MAIN, ".opencode/opencode.json", "prompts/worker.md"])
        expect({ path, isWritten: await write(task, path) }).toEqual({ path, isWritten: false })
      expect(asked).toEqual(['["src/own.ts"]'])
    },
  )

  once(
    promised("guard.A3", "a rule of the user's own that names the files decides, in the project and for an agent"),
    async () => {
      const task = await open(binary, { "*": "allow", edit: { "*": "allow", ".opencode/baton/**": "allow" } })
      expect(await write(task, MAIN)).toBe(true)
      expect(await write(task, STATE)).toBe(false)
    },
  )

  once(promised("guard.A2", "settings and prompts are asked for, and without an answer they stay"), async () => {
    const task = await openTaskProject(binary, obedient, { config: { permission: { edit: "allow" } } })
    task.project.write(".opencode/pass-over.json", "{}\n")
    for (const path of [".opencode/pass-over.json", "prompts/worker.md"]) {
      const before = task.project.read(path)
      const { stderr, stdout } = await task.run(`WRITE ${join(task.project.directory, path)}`)
      expect(task.project.read(path), `${stderr}${stdout}`).toBe(before)
      expect(`${stderr}${stdout}`).toMatch(/permission requested: edit/)
    }
  })

  once(
    promised("guard.A1", "an agent whose model edits by patches changes no program, plugin or state of Baton's"),
    async () => {
      const add = (path: string) => `*** Add File: ${path}\n+evil`
      const patches = [
        add(".opencode/plugins/evil.ts"),
        `${add("src/beside.ts")}\n${add(STATE)}`,
        `*** Update File: ${MAIN}\n@@\n+evil`,
        "*** Update File: README.md\n*** Move to: .opencode/plugins/moved.ts\n@@\n-# A project under test\n+evil",
        `*** Delete File: .opencode/plugins/write-guard.ts`,
        add("src/own.ts"),
      ]
      const task = await openTaskProject(binary, (request) => {
        const patch = patches[newestWords(request).split("[tool]").length - 1]
        if (patch === undefined) return { text: "Done." }
        return { tool: "apply_patch", input: { patchText: `*** Begin Patch\n${patch}\n*** End Patch` } }
      })
      const { project } = task
      // OpenCode gives the tool to models of this name.
      const config = JSON.parse(project.read("opencode.json"))
      const { models } = config.provider.scripted
      models["gpt-5"] = models.model
      project.write("opencode.json", JSON.stringify({ ...config, model: "scripted/gpt-5" }))
      const before = project.read(MAIN)
      await task.runWell("Patch it.")
      expect(task.model.received("turn")[0]?.tools).toContain(isLine2(binary) ? "patch" : "apply_patch")
      expect(task.model.received("turn")).toHaveLength(patches.length + 1)
      expect(project.read("src/own.ts")).toBe("evil\n")
      expect(project.read(MAIN)).toBe(before)
      const names = [".opencode/plugins/evil.ts", STATE, "src/beside.ts", ".opencode/plugins/moved.ts"]
      expect(names.filter((name) => existsSync(join(project.directory, name)))).toEqual([])
      expect(existsSync(join(project.directory, ".opencode/plugins/write-guard.ts"))).toBe(true)
    },
  )

  once(promised("guard.A4", "the agent's shell finds prog, and no other program of Baton's"), async () => {
    const task = await open(binary, "allow")
    const folder = join(task.project.directory, ".opencode/baton/bin")
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, "evil-git"), "#!/bin/sh\n", { mode: 0o755 })
    await task.say("RUN command -v evil-git || prog list -p nowhere && echo $(command -v prog) is prog")
    const said = task.model.received("turn").at(-1)?.conversation ?? ""
    expect(said).toMatch(/\.opencode\/baton\/path\/prog is prog/)
    expect(said).not.toContain("bin/evil-git\n")
  })
})
