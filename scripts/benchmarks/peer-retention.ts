import { withDeadline } from "../../.opencode/baton/host/deadline.ts"
import type { OpenCodeBinary } from "../../test/support/opencode-binary.ts"
import { requestCharacters } from "../../test/support/request-size.ts"
import { measureRetention, retentionScript } from "../../test/support/retention.ts"
import { openTestLedger } from "../../test/support/test-ledger.ts"
import { type BenchProject, withServer } from "./bench-project.ts"
import type { PeerRetentionRow } from "./results.ts"
import { withSubject } from "./subject-project.ts"

const CASE_DEADLINE_MS = 240_000
const TASK = {
  title: "Teach the parser CRLF",
  specification: "Lines may end in CRLF.\nKeep LF as it is.",
  definitionOfDone: "bun test passes on Windows line ends",
}

export type PeerCase = Pick<PeerRetentionRow, "subject" | "summariser" | "compactions">

/** Characters of each request that the model received, by kind. */
export type Sizes = { turns: number[]; compactions: number[]; total: number }

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0)

/**
 * Speaks to a session until the agent has made all its steps: once, where OpenCode goes on by itself after each compaction,
 * and "Go on." whenever it does not. Compactions are seconds apart here, and a plugin may hold that they are too close.
 *
 * @returns how often it had to be told to go on
 */
const workThrough = (opened: BenchProject, message: string, compactions: number): Promise<number> =>
  withServer(opened, {}, async ({ client }) => {
    const id = (await client.session.create({ body: {} })).data?.id ?? ""
    const say = async (text: string): Promise<void> => {
      const { error } = await client.session.prompt({ path: { id }, body: { parts: [{ type: "text", text }] } })
      if (error) throw new Error(`OpenCode refused: ${JSON.stringify(error).slice(0, 200)}`)
    }
    const isThrough = () => opened.model.received("turn").length > compactions
    const work = async (): Promise<number> => {
      await say(message)
      let told = 0
      for (; told < compactions && !isThrough(); told++) await say("Go on.")
      return told
    }
    const timed = await withDeadline(work(), CASE_DEADLINE_MS)
    if (timed.kind === "done") return timed.value
    if (timed.kind === "failed") throw timed.error
    throw new Error(`did not end within ${CASE_DEADLINE_MS / 1000} s`)
  })

/** The retention scenario with one subject, in `opencode serve`. */
export const runPeerCase = (
  binary: OpenCodeBinary,
  { subject, summariser, compactions }: PeerCase,
): Promise<{ row: PeerRetentionRow; sizes: Sizes }> =>
  withSubject(binary, subject, retentionScript(compactions, summariser), async (opened) => {
    const { project, model } = opened
    const taskID = subject === "baton" ? await openTestLedger(project, binary).addTask(TASK) : "ts-b54507"
    const message = `# Worker\n\nTask: ${taskID}\n\nNever touch the lexer; the release is frozen until Friday.\n`
    const toldToGoOn = await workThrough(opened, message, compactions)
    const seen = measureRetention(model.requests, taskID)
    const sizesOf = (kind: "turn" | "compaction") => model.received(kind).map(requestCharacters)
    const row = {
      version: binary.version,
      subject,
      summariser,
      compactions,
      compacted: seen.compactions,
      factsKept: seen.factsKept,
      turnsKnowingTask: seen.turnsKnowingTask,
      turns: model.received("turn").length - 1,
      toldToGoOn,
    }
    const total = sum(model.requests.map(requestCharacters))
    return { row, sizes: { turns: sizesOf("turn"), compactions: sizesOf("compaction"), total } }
  })

/** What a subject's requests have more than plain OpenCode's in the same places of the same work. */
export const addedTo = (plain: readonly number[], other: readonly number[]): number[] =>
  other.slice(0, plain.length).map((characters, index) => characters - (plain[index] ?? 0))
