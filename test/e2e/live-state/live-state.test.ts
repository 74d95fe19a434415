import { chmodSync, existsSync, readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { tool } from "@opencode-ai/plugin/tool"
import { createOpencodeClient } from "@opencode-ai/sdk/client"
import { describe, expect, test } from "vitest"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import { isAlive } from "../../../.opencode/baton/host/process.ts"
import { SETTINGS_FILE, type Settings } from "../../../.opencode/baton/host/settings.ts"
import { type StreamLine, streamLineSchema } from "../../../.opencode/baton/live-state/protocol.ts"
import { EMPTY_REDUCTION, reduceLine } from "../../../.opencode/baton/live-state/statefile.ts"
import { promised } from "../../requirements.ts"
import { readProcesses } from "../../support/files/process-table.ts"
import {
  BOTH_ENDS,
  bash,
  closeTaskProjects,
  eventually,
  type ModelReply,
  newestWords,
  openSharedTask,
  openTaskProject,
  REPOSITORY,
  type Script,
  type SharedTask,
  startServer,
  type TaskProject,
} from "../../support/index.ts"
import { liveFiles, liveFolder, recordingWriter } from "../../support/opencode/live-stream.ts"
import { sharedServer } from "../../support/opencode/task-project.ts"
import type { TestProject } from "../../support/opencode/test-project.ts"
import { compactsOnce, createSession, liveState, messagesOf, runWell } from "../sessions.ts"

closeTaskProjects()

const setLiveState = (project: TestProject, liveState: Partial<Settings["liveState"]>): void =>
  project.write(SETTINGS_FILE, JSON.stringify({ liveState }))

/** Stores the project's stream from the next start on. @returns the stream's file */
const recordStream = (project: TestProject): string => {
  const file = join(project.directory, "stream.jsonl")
  setLiveState(project, { writer: JSON.parse(recordingWriter(file)) })
  return file
}

/** The lines so far, each checked against the protocol; an incomplete last line is left out. */
const readStream = (file: string): StreamLine[] =>
  (existsSync(file) ? readFileSync(file, "utf8") : "")
    .split("\n")
    .slice(0, -1)
    .map((line) => streamLineSchema(tool.schema).parse(JSON.parse(line)) as StreamLine)

/** The state of a consumer of these lines. */
const reduceStream = (lines: readonly StreamLine[]) => {
  const reduction = lines.reduce((sum, line) => reduceLine(sum, JSON.stringify(line)), EMPTY_REDUCTION)
  expect(reduction.skipped).toBe(0)
  return reduction.envelope?.state
}

/** Waits until the stream's state, as JSON, holds this text. */
const streamedState = (file: string, json: string) =>
  eventually(`${json} in the stream`, () => {
    const state = reduceStream(readStream(file))
    return state && JSON.stringify(state).includes(json) ? state : undefined
  })

/** Removes values that differ between runs: times, ids of sessions, the process. */
const normaliseStream = (lines: readonly StreamLine[]): string =>
  lines
    .map((line) =>
      JSON.stringify(line, (key, value: unknown) => (key === "state_last_updated_at" ? undefined : value))
        .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, "TIME")
        .replaceAll(/\bses_[A-Za-z0-9]+/g, "SESSION")
        .replaceAll(/"opencode_pid":\d+/g, '"opencode_pid":1'),
    )
    .map((line) => `${line}\n`)
    .join("")

/** Waits for the start of the stream, some seconds after that of the session. */
const once =
  (script: Script, hasBegun: () => boolean): Script =>
  async (request) => {
    if (request.kind === "turn") await eventually("the live state", () => hasBegun() || undefined)
    return script(request)
  }

/** The stream of a real run, the same on both ends; see normaliseStream. */
const GOLDEN_STREAM = join(REPOSITORY, "test/fixtures/live-state-run.jsonl")

/** Makes this step when the message says ASK, and says a word otherwise. */
const asking =
  (step: ModelReply): Script =>
  (request) => {
    const last = newestWords(request)
    return last.includes("ASK") && !last.includes("[tool]") ? step : { text: "Done." }
  }

/** Pids of the embedded writers of statefiles in this folder. */
const writersOf = async (directory: string): Promise<number[]> =>
  (await readProcesses(process.platform))
    .filter(({ args }) => args.includes("state-writer.ts") && args.includes(directory))
    .map(({ pid }) => pid)

/** Listing the writers reads the machine's whole process table. */
const PROCESSES_EVERY_MS = 250

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised(
      ["live-state.A2", "live-state.A7", "live-state.B1", "live-state.D1"],
      "a run leaves a statefile that tells how it ended",
    ),
    async () => {
      const task: TaskProject = await openTaskProject(
        binary,
        once(compactsOnce, () => liveFiles(task.project.directory).length > 0),
      )
      await runWell(task, task.message)
      const { directory } = task.project
      await eventually("the end in the statefile", () => liveState(directory)?.agent.is_idle || undefined)
      expect(liveFiles(directory)).toEqual(["opencode-project.json"])
      const { event, ts, state } = JSON.parse(task.project.read(".opencode/state/live/opencode-project.json"))
      expect(event).toMatch(/^state\.(?:snapshot|patch)$/)
      expect(ts).toMatch(/Z$/)
      expect(state).toMatchObject({
        c2c_session_id: "opencode-project",
        c2c_alias: null,
        root_opencode_session_id: expect.stringMatching(/^ses_/),
        agent: { turn_count: 1, provider_id: "scripted", model_id: "model", last_step: { event_type: "session.idle" } },
        tui_focus: { ty: "prompt", details: null },
        pendingQuestion: null,
        extensions: { task: { id: task.taskID, role: "worker" }, compactions: 1 },
      })
      expect(task.project.read(".opencode/state/.gitignore")).toBe("*\n")
      const isLockGone = () => readdirSync(liveFolder(directory)).every((file) => file.endsWith(".json")) || undefined
      await eventually("the writer's lock to go", isLockGone)
    },
  )

  test(
    promised(
      ["live-state.A1", "live-state.A2", "live-state.A7", "live-state.A8", "live-state.D1"],
      "a writer of the user's gets version 1 and nothing more",
    ),
    async () => {
      const task: TaskProject = await openTaskProject(
        binary,
        once(compactsOnce, () => existsSync(join(task.project.home, "stream.jsonl"))),
      )
      const file = join(task.project.home, "stream.jsonl")
      const environment = {
        BATON_STATE_WRITER: recordingWriter(file, "echo WRITER-SAYS; echo WRITER-SAYS >&2"),
        C2C_MCP_SESSION_ID: "my-session",
        C2C_MCP_AUTO_REGISTER_ALIAS: "my-alias",
      }
      const { stdout, stderr } = await runWell(task, task.message, { environment })
      expect(stdout).toContain("Finished.")
      expect(stdout + stderr).not.toContain("WRITER-SAYS")
      const lines = await eventually("the end in the stream", () => {
        const found = readStream(file)
        return JSON.stringify(found).includes('"session.idle"') ? found : undefined
      })
      expect(normaliseStream(lines)).toBe(readFileSync(GOLDEN_STREAM, "utf8"))
      expect(lines[0]?.event).toBe("state.snapshot")
      expect(lines.some(({ event }) => event === "state.patch")).toBe(true)
      expect(JSON.stringify(lines)).not.toContain("extensions")
      expect(reduceStream(lines)).toMatchObject({ c2c_session_id: "my-session", c2c_alias: "my-alias" })
      expect(liveFiles(task.project.directory)).toEqual([])
    },
  )

  test(
    promised(
      ["live-state.A5", "live-state.A6", "live-state.D1"],
      "in serve, a permission is shown while it waits, and children are not",
    ),
    async () => {
      const { client, project, say } = await openSharedTask(binary, asking(bash("true")), {
        config: { permission: { bash: "ask" } },
      })
      const file = recordStream(project)
      const root = await createSession({ client })
      const answered = say("ASK", root)
      const waiting = await streamedState(file, '"ty":"permission"')
      const { details } = waiting.tui_focus as { details: { id: string; type: string } }
      expect(details.type).toBe("bash")
      await client.postSessionIdPermissionsPermissionId({
        path: { id: root, permissionID: details.id },
        body: { response: "once" },
      })
      await answered
      await say("Hello.", await createSession({ client }, root))
      const done = await streamedState(file, '"is_idle":true')
      expect(done).toMatchObject({
        root_opencode_session_id: root,
        agent: { turn_count: 1 },
        tui_focus: { ty: "prompt", details: null },
      })
    },
  )

  test.each([
    ["is not there", undefined],
    ["exits at once", "exit 3"],
    ["never reads", "sleep 30"],
    ["talks on both streams", "while read -r line; do echo out; pwd >&2; done"],
  ])(promised(["live-state.A3", "live-state.D2"], "a writer that %s costs the run nothing"), async (what, lines) => {
    let isPublished = false
    const task: SharedTask = await openSharedTask(binary, async (request) => {
      // The writer's lines in the log name the project's folder.
      if (isPublished && request.kind === "turn") await task.logged("live state is published")
      return compactsOnce(request)
    })
    const answers = async (): Promise<string[]> => {
      const id = await task.say(task.message)
      const own = (await messagesOf(task, id))
        .filter(({ info }) => info.role === "assistant")
        .flatMap(({ parts }) => parts)
      return own.flatMap((part) => (part.type === "text" ? part.text : part.type === "tool" ? part.tool : []))
    }
    setLiveState(task.project, { enabled: false })
    const plain = await answers()
    expect(plain).toEqual(["bash", "A summary.", "Finished."])
    const writer = join(task.project.directory, "writer")
    if (lines) {
      task.project.write("writer", `#!/bin/sh\n${lines}\n`)
      chmodSync(writer, 0o755)
    }
    setLiveState(task.project, { writer: [writer] })
    isPublished = true
    await task.restart()
    expect(await answers()).toEqual(plain)
    if (what === "talks on both streams") await task.logged("the state writer says")
  })

  test(promised("live-state.A2", "it is off when the settings say so"), async () => {
    const shown = (task: SharedTask) => liveFiles(task.project.directory)
    const on: SharedTask = await openSharedTask(
      binary,
      once(compactsOnce, () => shown(on).length > 0),
    )
    // If it were published, that would happen before the request that starts later.
    const off = await openSharedTask(binary, async (request) => {
      if (request.kind === "turn" && request.index === 0) await on.say(on.message)
      return compactsOnce(request)
    })
    setLiveState(off.project, { enabled: false })
    await off.say(off.message)
    expect([shown(on).length, shown(off)]).toEqual([1, []])
  })

  test(
    promised(
      ["live-state.A6", "live-state.D1"],
      "in serve, a question is shown while it waits, and gone when answered",
    ),
    async () => {
      const options = [
        { label: "Left", description: "Not right" },
        { label: "Right", description: "Not left" },
      ]
      const questions = [{ question: "Which way?", header: "Way", options }]
      const script = asking({ tool: "question", input: { questions } })
      const { client, project, say } = await openSharedTask(binary, script)
      const file = recordStream(project)
      const id = await createSession({ client })
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
      const thought = [createDeferred<void>(), createDeferred<void>()] as const
      const { client, project, taskID, message, say } = await openSharedTask(binary, async ({ conversation }) => {
        if (conversation.includes("Task: ")) await thought[conversation.includes(OTHER) ? 1 : 0].promise
        return { text: "Done." }
      })
      const shown = () => liveState(project.directory)
      try {
        await say("Hello.")
        expect((await eventually("the statefile", shown)).extensions.task).toBeNull()
        const session = await createSession({ client })
        for (const [index, task, text] of [[0, taskID, message] as const, [1, OTHER, `Task: ${OTHER}\n`] as const]) {
          const answered = say(text, session)
          answered.catch(() => {})
          await eventually(`the task ${task}`, () => shown().extensions.task?.id === task || undefined)
          thought[index].resolve()
          await answered
        }
      } finally {
        for (const each of thought) each.resolve()
      }
    },
  )

  test(
    promised(
      ["live-state.A2", "live-state.A5", "live-state.D1", "live-state.D2"],
      "a server of two directories has one writer and one statefile for each, and kill -9 leaves no process",
    ),
    async () => {
      const done: Script = () => ({ text: "Done." })
      const [one, two] = [await openTaskProject(binary, done), await openTaskProject(binary, done)]
      const folders = [one.project.directory, two.project.directory]
      const server = await startServer(binary, one.project)
      try {
        const ids: string[] = []
        for (const { project, message } of [one, two]) {
          const client = createOpencodeClient({ baseUrl: server.url, directory: project.directory })
          const id = await createSession({ client })
          await client.session.prompt({ path: { id }, body: { parts: [{ type: "text", text: message }] } })
          ids.push(id)
        }
        for (const [index, directory] of folders.entries()) {
          await eventually("the turn's end", () => liveState(directory)?.agent.is_idle || undefined)
          expect(liveFiles(directory)).toEqual(["opencode-project.json"])
          expect(liveState(directory)).toMatchObject({
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
          expect(liveState(directory)).toMatchObject({ root_opencode_session_id: ids[index] })
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
      const { project, say, restart } = await openSharedTask(binary, () => ({ text: "Done." }))
      const writerAfter = async (text: string, others: readonly number[]): Promise<readonly [number, string]> => {
        const id = await say(text)
        const writer = async () => (await writersOf(project.directory)).find((pid) => !others.includes(pid))
        return [await eventually("the writer", writer, 20_000, PROCESSES_EVERY_MS), id]
      }
      const [first] = await writerAfter("Hello", [])
      await restart()
      const [second, id] = await writerAfter("Hello again", [first])
      await eventually("the first writer's end", () => (isAlive(first) ? undefined : true))
      await eventually("the state", () => JSON.stringify(liveState(project.directory)).includes(id) || undefined)
      expect(await writersOf(project.directory)).toEqual([second])
      expect(liveFiles(project.directory)).toEqual([`opencode-${basename(project.directory)}.json`])
    },
  )
})
