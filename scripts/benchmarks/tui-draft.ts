import { readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { handoffScript } from "../../test/support/handoff-script.ts"
import { NEWEST } from "../../test/support/opencode-binary.ts"
import { eventually } from "../../test/support/opencode-server.ts"
import type { ModelReply, ModelRequest } from "../../test/support/scripted-model.ts"
import { openTestLedger } from "../../test/support/test-ledger.ts"
import { isTmuxHere, startTui, type TestTerminal } from "../../test/support/tui.ts"
import { type BenchProject, withBenchProject } from "./bench-project.ts"
import type { Benchmark } from "./benchmark.ts"
import { withBusyLoops } from "./busy-loops.ts"
import { type DraftFate, judgeDraft } from "./draft-fate.ts"
import type { DraftRow } from "./results.ts"

const TASK = {
  title: "Teach the parser CRLF",
  specification: "Lines may end in CRLF.\nKeep LF as it is.",
  definitionOfDone: "bun test passes on Windows line ends",
}
/** A person looks at the prompt before sending it, but not for ever. */
const DRAFT_DEADLINE_MS = 15_000
const REQUEST_DEADLINE_MS = 20_000

/** An agent whose handoffs wait until `draft` is called. */
const createAgent = () => {
  let release = (): void => {}
  let current = { mark: "", isTyped: Promise.resolve() }
  return {
    script: async (request: ModelRequest): Promise<ModelReply> => {
      const { mark, isTyped } = current
      const reply = handoffScript({ prompt: `Finish the part ${mark}`, files: ["README.md"] })(request)
      const answer = await reply
      if ("tool" in answer) await isTyped
      return answer
    },
    next: (mark: string): void => {
      const isTyped = new Promise<void>((resolve) => {
        release = resolve
      })
      current = { mark, isTyped }
    },
    draft: (): void => release(),
  }
}

const newestDraft = ({ project }: BenchProject): string => {
  const folder = join(project.directory, ".opencode", "state", "handoffs")
  const newest = readdirSync(folder).sort().at(-1) ?? ""
  return (JSON.parse(readFileSync(join(folder, newest), "utf8")) as { draft: string }).draft
}

const orUndefined = <T>(waiting: Promise<T>): Promise<T | undefined> => waiting.catch(() => undefined)

/** One `/handoff` in the session that the TUI shows, up to the answer to the draft in the next session. */
const handOver = async (
  opened: BenchProject,
  { tui, agent, index }: { tui: TestTerminal; agent: ReturnType<typeof createAgent>; index: number },
): Promise<DraftFate> => {
  const { model, project } = opened
  const [mark, typed, goal] = [`DRAFT-${index}.`, `TYPED-${index} `, `Goal ${index}.`]
  const requested = (what: string, test: (conversation: string) => boolean): Promise<ModelRequest> =>
    eventually(
      what,
      () => model.received("turn").findLast(({ conversation }) => test(conversation)),
      REQUEST_DEADLINE_MS,
    )
  // The prompt shows the end of a long draft, where the files stand that are not committed.
  const endOfDraft = `end-of-${index}.md`
  project.write(endOfDraft, "")
  try {
    agent.next(mark)
    await tui.send(`/handoff ${goal}`)
    await requested("the request for the handoff", (text) => text.slice(text.lastIndexOf("[user]")).includes(goal))
    tui.type(typed)
    await tui.shows(typed.trim())
    agent.draft()
    await requested("the tool's answer", (text) => text.includes(mark) && text.includes("[tool] Handoff"))
    const draft = newestDraft(opened)
    await orUndefined(tui.shows(endOfDraft, DRAFT_DEADLINE_MS))
    tui.press("Enter")
    const sent = await orUndefined(requested("the sent prompt", (text) => text.includes(`[user] ${typed.trim()}`)))
    const fate = judgeDraft(sent?.conversation, { typed, draft, mark })
    if (fate === "arrived") await tui.shows("Noted.")
    return fate
  } finally {
    rmSync(join(project.directory, endOfDraft))
  }
}

type Series = { handoffs: number; busyLoops: number; say: (text: string) => void }

/** Handoff after handoff in one TUI; after a draft that did not arrive it is another, so that the next begins afresh. */
const runSeries = ({ handoffs, busyLoops, say }: Series): Promise<DraftRow> => {
  const agent = createAgent()
  return withBenchProject(NEWEST, agent.script, {}, async (opened) => {
    const taskID = await openTestLedger(opened.project, NEWEST).addTask(TASK)
    const fates: Record<DraftFate, number> = { arrived: 0, lost: 0, doubled: 0, misplaced: 0 }
    const runTui = async (from: number): Promise<number> => {
      const tui = await startTui(NEWEST, opened.project)
      try {
        await tui.send(`Task: ${taskID}`)
        await tui.shows("Noted.")
        for (let index = from; index < handoffs; index++) {
          const fate = await handOver(opened, { tui, agent, index })
          fates[fate]++
          say(`  ${index + 1} of ${handoffs}: ${fate}`)
          if (fate !== "arrived") return index + 1
        }
        return handoffs
      } finally {
        await tui.stop()
      }
    }
    await withBusyLoops(busyLoops, async () => {
      for (let done = 0; done < handoffs; ) done = await runTui(done)
    })
    return { version: NEWEST.version, busyLoops, handoffs, ...fates }
  })
}

/** What becomes of drafts in the real TUI; the oldest OpenCode's loses what is typed while it draws (see tui.ts). */
export const measureTuiDrafts: Benchmark = async ({ quick, say }) => {
  if (!isTmuxHere()) throw new Error("tmux is not on this machine, and the TUI needs a terminal: install tmux")
  const drafts: DraftRow[] = []
  for (const [handoffs, busyLoops] of quick
    ? [
        [2, 0],
        [1, 2],
      ]
    : [
        [30, 0],
        [20, 2],
      ]) {
    say(`tui-draft on ${NEWEST.version}: ${handoffs} handoffs beside ${busyLoops} busy loops`)
    drafts.push(await runSeries({ handoffs: handoffs ?? 0, busyLoops: busyLoops ?? 0, say }))
  }
  return { figures: [], drafts }
}
