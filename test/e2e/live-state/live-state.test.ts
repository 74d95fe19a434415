import { chmodSync, readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { describe, expect, test } from "vitest"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  bash,
  casesOf,
  eventually,
  type ModelReply,
  newestWords,
  openSharedTask,
  openTaskProject,
  REPOSITORY,
  type Script,
  type SharedTask,
  type TaskProject,
  testsOnce,
} from "../../support/index.ts"
import { reduceStream } from "../../support/live-protocol.ts"
import {
  liveFiles,
  liveFolder,
  normaliseStream,
  readStream,
  recordingWriter,
  recordStream,
  setLiveState,
  setWriter,
  streamedState,
} from "../../support/opencode/live-stream.ts"
import { openServer, speak } from "../../support/opencode/model-project.ts"
import { compactsOnce, createSession, liveState, messagesOf, runWell } from "../sessions.ts"

/** The stream of a real run, the same on both ends; see normaliseStream. */
const GOLDEN_STREAM = join(REPOSITORY, "test/fixtures/live-state-run.jsonl")

/** Makes this step when the message says ASK, and says a word otherwise. */
const asking =
  (step: ModelReply): Script =>
  (request) => {
    const last = newestWords(request)
    return last.includes("ASK") && !last.includes("[tool]") ? step : { text: "Done." }
  }

describe.each(BOTH_ENDS)(promised(["live-state.A2", "live-state.D1"], "OpenCode $version"), (binary) => {
  const once = testsOnce(binary)
  once(promised(["live-state.A7", "live-state.B1"], "a run leaves a statefile that tells how it ended"), async () => {
    const task = await openTaskProject(binary, compactsOnce)
    await runWell(task, task.message)
    const { directory } = task.project
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
    expect(readdirSync(liveFolder(directory))).toEqual(["opencode-project.json"])
  })

  test(promised(["live-state.A1", "live-state.A7", "live-state.A8"], "a user's writer gets version 1"), async () => {
    const task = await openTaskProject(binary, compactsOnce)
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
    expect(liveFiles(task.project.directory)).toEqual(["my-session.json"])
  })

  test(promised(["live-state.A5", "live-state.A6"], "in serve, a permission is shown while it waits"), async () => {
    const config = { permission: { bash: "ask" } }
    const task = await openTaskProject(binary, asking(bash("true")), { config })
    const file = recordStream(task.project)
    await using server = await openServer(task)
    const { client } = server
    const root = await createSession(server)
    const answered = speak(server, root, "ASK")
    const waiting = await streamedState(file, '"ty":"permission"')
    const { details } = waiting.tui_focus as { details: { id: string; type: string } }
    expect(details.type).toBe("bash")
    const path = { id: root, permissionID: details.id }
    await client.postSessionIdPermissionsPermissionId({ path, body: { response: "once" } })
    await answered
    await speak(server, await createSession(server, root), "Hello.")
    const done = await streamedState(file, '"is_idle":true')
    // The child's turn is not counted.
    const root_opencode_session_id = root
    const tui_focus = { ty: "prompt", details: null }
    expect(done).toMatchObject({ root_opencode_session_id, agent: { turn_count: 1 }, tui_focus })
  })

  const WRITERS = [
    ["is not there", undefined],
    ["exits at once", "exit 3"],
    ["talks on both streams", "while read -r line; do echo out; pwd >&2; done"],
    ["never reads", "sleep 30"],
  ] as const
  const writers = casesOf(binary, WRITERS)
  test.each(writers)(promised(["live-state.A3", "live-state.D2"], "a writer that %s costs nothing"), async (...row) => {
    const [what, lines] = row
    let isPublished = false
    const task: TaskProject = await openTaskProject(binary, async (request) => {
      if (isPublished && request.kind === "turn") await logged("live state is published")
      return compactsOnce(request)
    })
    const logged = (part: string) =>
      eventually(`'${part}' in the log`, () => task.project.batonLog().find((line) => line.includes(part)))
    const answers = async (): Promise<string[]> => {
      await using server = await openServer(task)
      const id = await createSession(server)
      await speak(server, id, task.message)
      if (isPublished && what === "talks on both streams") await logged("the state writer says")
      const own = (await messagesOf(server, id)).filter(({ info }) => info.role === "assistant")
      const parts = own.flatMap((message) => message.parts)
      return parts.flatMap((part) => (part.type === "text" ? part.text : part.type === "tool" ? part.tool : []))
    }
    setLiveState(task.project, { enabled: false })
    const plain = await answers()
    expect(plain).toEqual(["bash", "A summary.", "Finished."])
    const writer = join(task.project.directory, "writer")
    if (lines) {
      task.project.write("writer", `#!/bin/sh\n${lines}\n`)
      chmodSync(writer, 0o755)
    }
    setLiveState(task.project, {})
    setWriter(task.project, [writer])
    isPublished = true
    expect(await answers()).toEqual(plain)
  })

  once(promised("live-state.A2", "live state is off when the settings say so"), async () => {
    const shown = (task: SharedTask) => liveFiles(task.project.directory)
    const whenShown: Script = async (request) => {
      if (request.kind === "turn") await eventually("the live state", () => shown(on).length > 0 || undefined)
      return compactsOnce(request)
    }
    const on: SharedTask = await openSharedTask(binary, whenShown)
    // If it were published, that would happen before the request that starts later.
    const off = await openSharedTask(binary, async (request) => {
      if (request.kind === "turn" && request.index === 0) await on.say(on.message)
      return compactsOnce(request)
    })
    setLiveState(off.project, { enabled: false })
    await off.say(off.message)
    expect([shown(on).length, shown(off)]).toEqual([1, []])
  })

  test(promised("live-state.A6", "in serve, a question is shown while it waits, and gone when answered"), async () => {
    const options = ["Left", "Right"].map((label) => ({ label, description: `To the ${label}` }))
    const questions = [{ question: "Which way?", header: "Way", options }]
    const script = asking({ tool: "question", input: { questions } })
    const task = await openTaskProject(binary, script)
    const file = recordStream(task.project)
    await using server = await openServer(task)
    const id = await createSession(server)
    const answered = speak(server, id, "ASK")
    const { pendingQuestion } = await streamedState(file, '"pendingQuestion":{')
    const pending = pendingQuestion as { id: string }
    expect(pending).toEqual({ id: pending.id, text: "Which way?", header: "Way", options: ["Left", "Right"] })
    const path = `/question/${pending.id}/reply?directory=${encodeURIComponent(task.project.directory)}`
    const headers = { "content-type": "application/json" }
    const answer = { method: "POST", body: JSON.stringify({ answers: [["Left"]] }), headers }
    const reply = await fetch(new URL(path, server.url), answer)
    expect(reply.status).toBe(200)
    await answered
    const done = await streamedState(file, '"is_idle":true')
    expect(done).toMatchObject({ pendingQuestion: null, tui_focus: { ty: "prompt" } })
    const snapshots = readStream(file).flatMap((line) =>
      line.event === "state.snapshot" ? [line.state.pendingQuestion?.id] : [],
    )
    expect(snapshots.slice(-2)).toEqual([pending.id, undefined])
  })

  once(promised("live-state.A2", "a later message's task is shown while the model thinks about it"), async () => {
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
        await eventually(`the task ${task}`, () => shown().extensions.task?.id === task || undefined)
        thought[index].resolve()
        await answered
      }
    } finally {
      for (const each of thought) each.resolve()
    }
  })

  once(promised("live-state.D2", "a directory whose plugins start anew has one statefile"), async () => {
    const { project, say, restart } = await openSharedTask(binary, () => ({ text: "Done." }))
    const shownAfter = async (text: string): Promise<void> => {
      const id = await say(text)
      await eventually("the state", () => JSON.stringify(liveState(project.directory))?.includes(id) || undefined)
    }
    await shownAfter("Hello")
    await restart()
    await shownAfter("Hello again")
    expect(liveFiles(project.directory)).toEqual([`opencode-${basename(project.directory)}.json`])
  })
})
