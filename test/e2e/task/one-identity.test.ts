import { readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  BRIEF,
  COMPACTING_STEP,
  closeTaskProjects,
  eventually,
  LEDGER_WAIT_MS,
  newestWords,
  openSharedTask,
  type Script,
  type SharedTask,
} from "../../support/index.ts"
import { handedOverTo } from "../../support/model/handoff-script.ts"
import { liveFiles, liveFolder } from "../../support/opencode/live-stream.ts"

closeTaskProjects()

const CORRECTION = "No, use tabs instead of spaces in the formatter."
const REVIEW = { subagent: "audit", objective: "REVIEW-THIS please", reason: "review" }
const REVIEWED = { status: "completed", decision: "approved", summary: "It is right.", findings: [] }

/** An agent that follows the newest message of its session; a reviewer returns at once. */
const script: Script = (request) => {
  if (request.kind === "compaction") return { text: "Something was done." }
  const last = newestWords(request)
  if (last.includes("[tool]")) return { text: "Done." }
  if (last.includes("Hand this work over"))
    return { tool: "handoff_session", input: { prompt: "Go on with it.", files: ["README.md"] } }
  if (last.includes("REVIEW-THIS")) return { tool: "pass_over_return", input: REVIEWED }
  if (last.includes("DELEGATE")) return { tool: "pass_over", input: REVIEW }
  if (last.includes("COMPACT-NOW")) return COMPACTING_STEP
  return { text: "I wrote it with spaces." }
}

const statefile = ({ project }: SharedTask) => {
  const [name] = liveFiles(project.directory)
  return name === undefined ? undefined : JSON.parse(readFileSync(join(liveFolder(project.directory), name), "utf8"))
}

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised(
      ["identity.A2", "compaction.C6", "handoff.A2", "pass-over.A1", "live-state.A8", "learning.B2"],
      "one task is the same in every system: summary, next turn, handoff, subagent, live state, learnings, ledger",
    ),
    async () => {
      const task = await openSharedTask(binary, script)
      const { taskID, project, model, ledger, say } = task
      project.write(".opencode/pass-over.json", "{}\n")
      const root = await say(task.message)
      await say(CORRECTION, root)

      await say("DELEGATE the review.", root)
      const child = model.received("turn").find(({ conversation }) => conversation.includes("REVIEW-THIS please"))
      expect(child?.conversation).toContain(taskID)
      expect(child?.conversation).toContain("Teach the parser CRLF")
      const told = model.received("turn").map(({ conversation }) => conversation)
      expect(told.find((text) => text.includes("audit → completed, decision: approved"))).toBeDefined()

      await say("COMPACT-NOW", root)
      expect(model.received("compaction").at(-1)?.conversation).toContain(`Task: ${taskID}`)
      const next = model.received("turn").at(-1)?.conversation ?? ""
      expect(next).toContain("Something was done.")
      for (const part of [`Task: ${taskID}`, "worker", BRIEF]) expect(next).toContain(part)

      const body = { command: "handoff", arguments: "finish the parser" }
      await task.client.session.command({ path: { id: root }, body })
      const handedTo = handedOverTo(task)
      await say("Go on.", handedTo)
      const begun = model.received("turn").at(-1)?.conversation ?? ""
      for (const part of [`Continuing work from session ${root}`, "# Worker", `Task: ${taskID}`])
        expect(begun).toContain(part)
      const bound = JSON.parse(project.read(`.opencode/state/tasks/${handedTo}.json`))
      expect(bound).toMatchObject({ taskID, role: "worker" })

      await eventually("the live state of the new session", () => {
        const state = statefile(task)?.state
        return state?.root_opencode_session_id === handedTo && state.extensions?.task?.id === taskID ? state : undefined
      })
      const correction = async () => {
        const listed = await ledger.prog("context", "-p", basename(project.directory), "--summary", "--json")
        const all: { summary: string; detail: string }[] = JSON.parse(listed)
        return all.find(({ summary }) => summary === CORRECTION)
      }
      const learned = await eventually("the learning in the ledger", correction, ...LEDGER_WAIT_MS)
      expect(learned.detail).toContain(taskID)

      const wholeLog = async () => {
        const all = (await ledger.show(taskID)).logs.map(({ message }) => message)
        const isThere = (part: string) => all.some((message) => message.includes(part))
        return ["Compaction 1", `Handoff to ${handedTo}`, "audit"].every(isThere) ? all : undefined
      }
      const messages = await eventually("the log of the task", wholeLog, ...LEDGER_WAIT_MS)
      expect(messages.filter((message) => message.startsWith("Compaction 1"))).toHaveLength(1)
    },
  )
})
