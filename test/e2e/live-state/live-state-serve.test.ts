import { once } from "node:events"
import { readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { createOpencodeClient } from "@opencode-ai/sdk/client"
import { describe, expect, test } from "vitest"
import { isAlive } from "../../../.opencode/baton/host/process.ts"
import { promised } from "../../requirements.ts"
import { readProcesses } from "../../support/files/process-table.ts"
import {
  BOTH_ENDS,
  closeTaskProjects,
  eventually,
  newestWords,
  openSharedTask,
  openTaskProject,
  type Script,
  startServer,
} from "../../support/index.ts"
import { liveFiles, liveFolder, readStream, recordStream, streamedState } from "../../support/opencode/live-stream.ts"
import { sharedServer } from "../../support/opencode/shared-server.ts"

closeTaskProjects()

const QUESTION = {
  question: "Which way?",
  header: "Way",
  options: [
    { label: "Left", description: "Not right" },
    { label: "Right", description: "Not left" },
  ],
}

/** Asks its question on command, and accepts any answer. */
const asking: Script = (request) => {
  const last = newestWords(request)
  return last.includes("ASK") && !last.includes("[tool]")
    ? { tool: "question", input: { questions: [QUESTION] } }
    : { text: "Done." }
}

/** Pids of the embedded writers of statefiles in this folder. */
const writersOf = async (directory: string): Promise<number[]> =>
  (await readProcesses(process.platform))
    .filter(({ args }) => args.includes("state-writer.ts") && args.includes(directory))
    .map(({ pid }) => pid)

/** Listing the writers reads the machine's whole process table. */
const PROCESSES_EVERY_MS = 250

const said = (text: string) => ({ body: { parts: [{ type: "text" as const, text }] } })

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised(
      ["live-state.A6", "live-state.D1"],
      "in serve, a question is shown while it waits, and gone when answered",
    ),
    async () => {
      const { client, project, say } = await openSharedTask(binary, asking)
      const file = recordStream(project)
      const id = (await client.session.create({ body: {} })).data?.id ?? ""
      const answered = say("ASK", id)
      const { pendingQuestion } = await streamedState(file, '"pendingQuestion":{')
      const pending = pendingQuestion as { id: string }
      expect(pending).toEqual({ id: pending.id, text: "Which way?", header: "Way", options: ["Left", "Right"] })
      const path = `/question/${pending.id}/reply?directory=${encodeURIComponent(project.directory)}`
      const reply = await fetch(new URL(path, sharedServer(binary).url), {
        method: "POST",
        body: JSON.stringify({ answers: [["Left"]] }),
        headers: { "content-type": "application/json" },
      })
      expect(reply.status).toBe(200)
      await answered
      const done = await streamedState(file, '"is_idle":true')
      expect(done).toMatchObject({ pendingQuestion: null, tui_focus: { ty: "prompt" } })
      const snapshots = readStream(file).flatMap((line) =>
        line.event === "state.snapshot" ? [line.state.pendingQuestion?.id] : [],
      )
      expect(snapshots.slice(-2)).toEqual([pending.id, undefined])
    },
  )

  test(
    promised("live-state.A2", "the task that a later message sets is shown while the model thinks about its answer"),
    async () => {
      const OTHER = "ts-0ddba11"
      const thought = [new AbortController(), new AbortController()] as const
      const { client, project, taskID, message, say } = await openSharedTask(binary, async ({ conversation }) => {
        const { signal } = thought[conversation.includes(OTHER) ? 1 : 0]
        if (conversation.includes("Task: ") && !signal.aborted) await once(signal, "abort")
        return { text: "Done." }
      })
      const statefile = () => liveFiles(project.directory)[0]
      const shown = () => JSON.parse(readFileSync(join(liveFolder(project.directory), statefile() ?? ""), "utf8")).state
      try {
        await say("Hello.")
        await eventually("the statefile", statefile)
        expect(shown().extensions.task).toBeNull()
        const session = (await client.session.create({ body: {} })).data?.id ?? ""
        for (const [index, task, text] of [[0, taskID, message] as const, [1, OTHER, `Task: ${OTHER}\n`] as const]) {
          const answered = say(text, session)
          answered.catch(() => {})
          await eventually(`the task ${task}`, () => shown().extensions.task?.id === task || undefined)
          thought[index].abort()
          await answered
        }
      } finally {
        for (const each of thought) each.abort()
      }
    },
  )

  test(
    promised(
      ["live-state.A2", "live-state.A5", "live-state.D1", "live-state.D2"],
      "a server of two directories has one writer and one statefile for each, and kill -9 leaves no process",
    ),
    async () => {
      const [one, two] = [await openTaskProject(binary, asking), await openTaskProject(binary, asking)]
      const folders = [one.project.directory, two.project.directory]
      const server = await startServer(binary, one.project)
      try {
        const clients = folders.map((directory) => createOpencodeClient({ baseUrl: server.url, directory }))
        const ids: string[] = []
        for (const [index, client] of clients.entries()) {
          const id = (await client.session.create({ body: {} })).data?.id ?? ""
          await client.session.prompt({ path: { id }, ...said([one, two][index]?.message ?? "") })
          ids.push(id)
        }
        const read = (directory: string) =>
          JSON.parse(readFileSync(join(liveFolder(directory), "opencode-project.json"), "utf8")).state
        for (const [index, directory] of folders.entries()) {
          await eventually("the statefile", () => liveFiles(directory)[0])
          await eventually("the turn's end", () => read(directory).agent.is_idle || undefined)
          expect(read(directory)).toMatchObject({
            root_opencode_session_id: ids[index],
            opencode_pid: server.pid,
            agent: { turn_count: 1 },
            extensions: { task: { id: [one, two][index]?.taskID } },
          })
          expect(await writersOf(directory)).toHaveLength(1)
        }
        const writers = (await Promise.all(folders.map(writersOf))).flat()
        process.kill(server.pid, "SIGKILL")
        await eventually("the writers' end", () => (writers.some(isAlive) ? undefined : true))
        for (const [index, directory] of folders.entries())
          expect(read(directory)).toMatchObject({ root_opencode_session_id: ids[index] })
      } finally {
        await server.stop()
      }
    },
  )

  test(
    promised(
      ["live-state.A2", "live-state.D2"],
      "a directory whose plugins start anew keeps one writer and one statefile",
    ),
    async () => {
      const { project, say, restart } = await openSharedTask(binary, asking)
      const writerAfter = async (text: string, others: readonly number[]): Promise<readonly [number, string]> => {
        const id = await say(text)
        const writer = async () => (await writersOf(project.directory)).find((pid) => !others.includes(pid))
        return [await eventually("the writer", writer, 20_000, PROCESSES_EVERY_MS), id]
      }
      const [first] = await writerAfter("Hello", [])
      await restart()
      const [second, id] = await writerAfter("Hello again", [first])
      await eventually("the first writer's end", () => (isAlive(first) ? undefined : true))
      const file = join(liveFolder(project.directory), `opencode-${basename(project.directory)}.json`)
      await eventually("the state", () => readFileSync(file, "utf8").includes(id) || undefined)
      expect(await writersOf(project.directory)).toEqual([second])
      expect(liveFiles(project.directory)).toHaveLength(1)
    },
  )
})
