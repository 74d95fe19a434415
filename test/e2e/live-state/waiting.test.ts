import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { accountFolder } from "../../../.opencode/baton/host/project.ts"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  bash,
  eventually,
  newestWords,
  openSharedTask,
  openTaskProject,
  type Script,
} from "../../support/index.ts"
import { liveFiles, readStream, recordStream } from "../../support/opencode/live-stream.ts"
import { openServer, speak } from "../../support/opencode/model-project.ts"
import { NEWEST } from "../../support/opencode/opencode-binary.ts"
import { runProgram } from "../../support/opencode/opencode-run.ts"
import { createSession, liveState } from "../sessions.ts"

const delegate = (prompt: string) => ({
  tool: "task",
  input: { description: `To ${prompt}`, prompt, subagent_type: "helper" },
})
const QUESTION = { question: "Which way?", header: "Way", options: [{ label: "Left", description: "To the left" }] }

/** A subagent runs a command at DEPTH-1, its own subagent at DEPTH-2; with QUIZ one asks. */
const script: Script = (request) => {
  const last = newestWords(request)
  if (last.includes("[tool]")) return { text: "Done." }
  if (last.includes("DEPTH-2")) return delegate("DEPTH-1")
  if (last.includes("DEPTH-1")) return delegate("BASH")
  if (last.includes("QUIZ")) return delegate("ASK")
  if (last.includes("BASH")) return bash("echo ran")
  return last.includes("ASK") ? { tool: "question", input: { questions: [QUESTION] } } : { text: "Noted." }
}

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  const HELPER = { mode: "subagent", description: "Helps.", permission: { task: "allow", question: "allow" } }
  const config = {
    permission: { bash: "ask" },
    agent: { helper: HELPER },
    ...(binary.version === NEWEST.version ? { subagent_depth: 2 } : {}),
  }
  const helper = (prompt: string) => `To ${prompt} (@helper subagent)`
  const runBaton = async (project: Parameters<typeof runProgram>[1]["project"], ...args: string[]) => {
    const launcher = join(project.directory, ".opencode/baton/bin/baton")
    const { stdout, stderr } = await runProgram([launcher, ...args], {
      project,
      environment: { BATON_OPENCODE: binary.path },
    })
    expect(stderr).toBe("")
    return stdout
  }

  test(
    promised(["waiting.B1", "waiting.B2"], "a permission of a subagent's subagent is shown, listed and told once"),
    async () => {
      const task = await openTaskProject(binary, script, { config })
      const { project } = task
      const baton = (...args: string[]) => runBaton(project, ...args)
      const told = join(project.home, "told")
      const settings = join(accountFolder(project.environment), "baton.json")
      mkdirSync(dirname(settings), { recursive: true })
      // What comes on stdin, and a variable, on one line for each run.
      const command = ["/bin/sh", "-c", `printf '%s %s\\n' "$(cat)" "$BATON_WAITING_SUBJECT" >> '${told}'`]
      writeFileSync(settings, JSON.stringify({ onWaiting: command }))
      // A project cannot name one.
      project.write(".opencode/baton.json", JSON.stringify({ onWaiting: ["touch", join(project.home, "of-project")] }))
      await using server = await openServer(task)
      const id = await createSession(server)
      const body = { parts: [{ type: "text" as const, text: "DEPTH-2" }] }
      const answered = server.client.session.prompt({ path: { id }, body })
      const state = await eventually("what waits", () => {
        const found = liveState(project.directory)
        return found?.extensions.waiting.length > 0 ? found : undefined
      })
      const [waits] = state.extensions.waiting
      const about = { kind: "permission", type: "bash", subject: "echo ran" }
      expect(waits).toMatchObject({ ...about, root_session_id: id, subagent: helper("BASH") })
      expect([waits.session_id === id, state.tui_focus.ty, state.agent.is_idle]).toEqual([false, "prompt", false])

      const goTo = `opencode attach ${server.url} --dir ${project.directory} --session ${id}`
      expect(await baton("state")).toContain(`asks permission: bash: echo ran (subagent ${helper("BASH")})`)
      const observed = await baton("observe")
      for (const part of ["Waiting for you\n", "asks permission", "bash: echo ran\n", `subagent ${helper("BASH")}\n`])
        expect(observed).toContain(part)
      const shown = { ...about, subagent: helper("BASH"), session: waits.session_id, rootSession: id, goTo }
      for (const command of ["observe", "state"])
        expect(JSON.parse(await baton(command, "--json"))).toMatchObject([{ waits: [shown] }])
      const elsewhere = await runBaton({ ...project, directory: project.directory }, "waiting", "--json")
      expect(JSON.parse(elsewhere)).toMatchObject([{ ...shown, folder: project.directory, pid: server.pid }])
      expect(await baton("waiting")).toContain(goTo)

      const line = await eventually("the command's line", () => readFileSync(told, "utf8").trim() || undefined)
      const [{ answer }] = JSON.parse(elsewhere)
      expect((await runProgram(["/bin/sh", "-c", answer], { project })).stdout).toBe("true")
      await answered
      expect(task.model.received("turn").some(({ conversation }) => conversation.includes("[tool] ran\n"))).toBe(true)
      await eventually(
        "nothing that waits",
        () => liveState(project.directory).extensions.waiting.length === 0 || undefined,
      )
      expect(await baton("waiting")).toBe("Nothing waits\n")
      expect(readFileSync(told, "utf8").trim(), "once").toBe(line)
      expect(line).toMatch(/ echo ran$/)
      expect(JSON.parse(line.replace(/ echo ran$/, ""))).toMatchObject({ ...shown, folder: project.directory })
      expect(existsSync(join(project.home, "of-project"))).toBe(false)
    },
  )

  test(promised("waiting.B1", "a subagent's question is shown beside a writer that sees version 1"), async () => {
    const task = await openTaskProject(binary, script, { config })
    const { project } = task
    const file = recordStream(project)
    await using server = await openServer(task)
    const id = await createSession(server)
    const answered = speak(server, id, "QUIZ").catch(() => {})
    const waits = await eventually("the question", () => liveState(project.directory)?.extensions.waiting[0])
    expect(waits).toMatchObject({ kind: "question", text: "Which way?", options: ["Left"], subagent: helper("ASK") })
    await server.client.session.abort({ path: { id } })
    await answered
    const isOver = () => liveState(project.directory).extensions.waiting.length === 0 || undefined
    await eventually("the end of the question", isOver)
    expect(liveFiles(project.directory)).toHaveLength(1)
    expect(JSON.stringify(readStream(file))).not.toMatch(/extensions|Which way/)
  })

  test(
    promised("waiting.B1", "a provider that is tried again is shown with its message and the next try"),
    async () => {
      let failures = 0
      const task = await openSharedTask(binary, async () => {
        if (failures++ === 0) return { status: 429, message: "Too many words" }
        const state = await eventually("the retry's end", () => {
          const found = liveState(task.project.directory)
          return found?.extensions.retry === null ? found : undefined
        })
        return { text: state ? "At last." : "" }
      })
      const { project } = task
      const answered = task.say("Hello.")
      const found = () => liveState(project.directory)?.extensions.retry ?? undefined
      const retry = await eventually("the retry", found)
      expect(retry).toMatchObject({ message: expect.stringContaining("Too many words"), attempt: 1, subagent: null })
      expect(Date.parse(retry.next_at)).toBeGreaterThan(Date.parse(retry.since))
      await answered
    },
  )
})
