import { chmodSync, existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  bash,
  COMPACTING_STEP,
  closeTaskProjects,
  eventually,
  type ModelReply,
  newestWords,
  openSharedTask,
  openTaskProject,
  REPOSITORY,
  type Script,
  type SharedTask,
  type TaskProject,
} from "../../support/index.ts"
import {
  liveFiles,
  liveFolder,
  normaliseStream,
  readStream,
  recordingWriter,
  recordStream,
  reduceStream,
  setLiveState,
  streamedState,
} from "../../support/opencode/live-stream.ts"

closeTaskProjects()

/** Waits for the start of the stream, some seconds after that of the session. */
const once =
  (script: Script, hasBegun: () => boolean): Script =>
  async (request) => {
    if (request.kind === "turn") await eventually("the live state", () => hasBegun() || undefined)
    return script(request)
  }

/** The stream of a real run, the same on both ends; see normaliseStream. */
const GOLDEN_STREAM = join(REPOSITORY, "test/fixtures/live-state-run.jsonl")

/** Compacts once in each run. */
const compactsOnce: Script = ({ kind, conversation }): ModelReply => {
  if (kind === "compaction") return { text: "A summary." }
  if (conversation.includes("What did we do so far?")) return { text: "Finished." }
  return COMPACTING_STEP
}

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
      const result = await task.run(task.message)
      expect(result.exitCode, result.stderr).toBe(0)
      const name = await eventually("the statefile", () => liveFiles(task.project.directory)[0])
      expect(name).toBe("opencode-project.json")
      const read = () => JSON.parse(readFileSync(join(liveFolder(task.project.directory), name), "utf8"))
      await eventually("the end in the statefile", () => (read().state.agent.is_idle === true ? true : undefined))
      const { event, ts, state } = read()
      expect(["state.snapshot", "state.patch"]).toContain(event)
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
      expect(readFileSync(join(liveFolder(task.project.directory), "../.gitignore"), "utf8")).toBe("*\n")
      await eventually("the writer's lock to go", () =>
        readdirSync(liveFolder(task.project.directory)).every((file) => file.endsWith(".json")) ? true : undefined,
      )
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
      const result = await task.run(task.message, { environment })
      expect(result.exitCode, result.stderr).toBe(0)
      expect(result.stdout).toContain("Finished.")
      expect(result.stdout + result.stderr).not.toContain("WRITER-SAYS")
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
      const asks: Script = (request) => {
        const last = newestWords(request)
        return last.includes("ASK") && !last.includes("[tool]") ? bash("true") : { text: "Done." }
      }
      const { client, project, say } = await openSharedTask(binary, asks, { config: { permission: { bash: "ask" } } })
      const file = recordStream(project)
      const root = (await client.session.create({ body: {} })).data?.id ?? ""
      const answered = say("ASK", root)
      const waiting = await streamedState(file, '"ty":"permission"')
      const { details } = waiting.tui_focus as { details: { id: string; type: string } }
      expect(details.type).toBe("bash")
      await client.postSessionIdPermissionsPermissionId({
        path: { id: root, permissionID: details.id },
        body: { response: "once" },
      })
      await answered
      const child = (await client.session.create({ body: { parentID: root } })).data?.id ?? ""
      await say("Hello.", child)
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
      const messages = (await task.client.session.messages({ path: { id } })).data ?? []
      const own = messages.filter(({ info }) => info.role === "assistant").flatMap(({ parts }) => parts)
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
})
