import { spawn } from "node:child_process"
import { readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { handoffScript } from "../../test/support/model/handoff-script.ts"
import type { ModelRequest, Script } from "../../test/support/model/scripted-model.ts"
import { type ModelProject, openModelProject } from "../../test/support/opencode/model-project.ts"
import { eventually } from "../../test/support/opencode/opencode-server.ts"
import { isTmuxHere, startTui, type TestTerminal } from "../../test/support/opencode/tui.ts"
import type { Benchmark, Context } from "./results.ts"

/** A user reads the draft before sending it, within this time. */
const DRAFT_DEADLINE_MS = 15_000
const REQUEST_DEADLINE_MS = 20_000

type Fate = "arrived" | "lost" | "doubled" | "misplaced"

/** Judges a draft by the model's conversation after it was sent; `mark` occurs once in this draft and in no other. */
const judge = (conversation: string | undefined, typed: string, draft: string, mark: string): Fate => {
  const marks = (conversation ?? "").split(mark).length - 1
  if (marks === 0) return "lost"
  if (marks > 1) return "doubled"
  return conversation?.startsWith(`[user] ${typed}${draft.trimEnd()}`) ? "arrived" : "misplaced"
}

/** An agent whose handoffs have a mark in their draft, and wait until the user has typed. */
const createAgent = () => {
  const agent = { mark: "", typed: Promise.withResolvers<void>() }
  const script: Script = async (request) => {
    const answer = await handoffScript({ prompt: `Finish the part ${agent.mark}`, files: ["README.md"] })(request)
    if ("tool" in answer) await agent.typed.promise
    return answer
  }
  return Object.assign(agent, { script })
}
type Agent = ReturnType<typeof createAgent>

const orUndefined = <T>(waiting: Promise<T>): Promise<T | undefined> => waiting.catch(() => undefined)

/** One `/handoff` in the TUI's session, up to the answer to the draft in the next session. */
const handOver = async ({ model, project }: ModelProject, agent: Agent, tui: TestTerminal, index: number) => {
  const [mark, typed, goal] = [`DRAFT-${index}.`, `TYPED-${index} `, `Goal ${index}.`]
  const requested = (what: string, test: (conversation: string) => boolean): Promise<ModelRequest> => {
    const find = () => model.received("turn").findLast(({ conversation }) => test(conversation))
    return eventually(what, find, REQUEST_DEADLINE_MS)
  }
  // The prompt shows the end of a long draft, with the files that are not committed.
  const endOfDraft = `end-of-${index}.md`
  project.write(endOfDraft, "")
  try {
    Object.assign(agent, { mark, typed: Promise.withResolvers() })
    await tui.send(`/handoff ${goal}`)
    await requested("the request for the handoff", (text) => text.slice(text.lastIndexOf("[user]")).includes(goal))
    tui.type(typed)
    await tui.shows(typed.trim())
    agent.typed.resolve()
    await requested("the tool's answer", (text) => text.includes(mark) && text.includes("[tool] Handoff"))
    const folder = join(project.directory, ".opencode", "state", "handoffs")
    const newest = readFileSync(join(folder, readdirSync(folder).sort().at(-1) ?? ""), "utf8")
    const { draft } = JSON.parse(newest) as { draft: string }
    await orUndefined(tui.shows(endOfDraft, DRAFT_DEADLINE_MS))
    tui.press("Enter")
    const sent = await orUndefined(requested("the sent prompt", (text) => text.includes(`[user] ${typed.trim()}`)))
    const fate = judge(sent?.conversation, typed, draft, mark)
    if (fate === "arrived") await tui.shows("Noted.")
    return fate
  } finally {
    rmSync(join(project.directory, endOfDraft))
  }
}

/** Repeats the handoff in one TUI; after a draft that did not arrive a new TUI is started. */
const runSeries = async ({ binary, row }: Context, handoffs: number, busyLoops: number): Promise<void> => {
  const agent = createAgent()
  await using opened = await openModelProject(binary, agent.script)
  const taskID = await opened.addTask()
  const fates: Record<Fate, number> = { arrived: 0, lost: 0, doubled: 0, misplaced: 0 }
  const runTui = async (from: number): Promise<number> => {
    const tui = await startTui(binary, opened.project)
    try {
      await tui.send(`Task: ${taskID}`)
      await tui.shows("Noted.")
      for (let index = from; index < handoffs; index++) {
        const fate = await handOver(opened, agent, tui, index)
        fates[fate]++
        if (fate !== "arrived") return index + 1
      }
      return handoffs
    } finally {
      await tui.stop()
    }
  }
  // Each ends by itself after this process has ended.
  const loops = Array.from({ length: busyLoops }, () => spawn("sh", ["-c", "while kill -0 $PPID; do :; done"]))
  try {
    for (let done = 0; done < handoffs; ) done = await runTui(done)
  } finally {
    for (const loop of loops) loop.kill("SIGKILL")
  }
  row("drafts", { version: binary.version, busyLoops, handoffs, ...fates })
}

export const measureTuiDrafts: Benchmark = async (context) => {
  if (!isTmuxHere()) throw new Error("tmux is not on this machine, and the TUI needs a terminal: install tmux")
  const [idle, busy] = context.quick ? [2, 1] : [30, 20]
  await runSeries(context, idle, 0)
  await runSeries(context, busy, 2)
}
