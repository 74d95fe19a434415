import { withDeadline } from "../../.opencode/baton/host/async.ts"
import { laterWord, measureWords, type WordSummariser, wordsScript } from "../../test/support/model/retention.ts"
import { compact, createSession, openServer, speak, workerMessage } from "../../test/support/opencode/model-project.ts"
import { install, openSubject, PEERS } from "./peers.ts"
import type { Benchmark, Context, Rows } from "./results.ts"

const SUBJECTS = ["plain OpenCode", "Baton", ...PEERS]
const SUMMARISERS: readonly WordSummariser[] = ["faithful", "careless", "empty", "refusing"]
const CASE_DEADLINE_MS = 600_000

/**
 * One session in `opencode serve`: the task, then again and again a further instruction and a compaction, and "Go on." at last.
 *
 * @returns how many of the instructions the last turn's request shows, and how many of the newest five
 */
const runCase = async (context: Context, subject: string, summariser: WordSummariser, compactions: number) => {
  await using opened = await openSubject(context, subject, wordsScript(summariser))
  const taskID = subject === "Baton" ? await opened.addTask() : "ts-b54507"
  await using server = await openServer(opened)
  const work = async (): Promise<void> => {
    const id = await createSession(server)
    await speak(server, id, workerMessage(taskID))
    for (let index = 0; index < compactions; index++) {
      await speak(server, id, laterWord(index))
      await compact(server, id)
    }
    await speak(server, id, "Go on.")
  }
  const timed = await withDeadline(work(), CASE_DEADLINE_MS)
  if (timed.kind === "failed") throw timed.error
  if (timed.kind !== "done") throw new Error(`did not end within ${CASE_DEADLINE_MS / 1000} s`)
  return measureWords(opened.model.requests, compactions)
}

/** Measures what is left of instructions that the user gave after the first message. */
export const measureLaterWords: Benchmark = async (context) => {
  const { binary, quick, say, row } = context
  const compactions = quick ? 2 : 50
  install(say)
  for (const subject of SUBJECTS)
    for (const summariser of SUMMARISERS) {
      const about: Pick<Rows["words"], "version" | "subject" | "summariser" | "compactions"> = {
        version: binary.version,
        subject,
        summariser,
        compactions,
      }
      say(`${subject}, ${summariser} summariser`)
      try {
        row("words", { ...about, ...(await runCase(context, subject, summariser, compactions)) })
      } catch (error) {
        // The comparison needs plain OpenCode and Baton.
        if (!PEERS.includes(subject)) throw error
        const text = error instanceof Error ? error.message : String(error)
        // Without folders of this run and characters that would end a table cell.
        row("words", { ...about, failure: text.replace(/\/\S*\/(?=[^/\s]+)|[\s|]+/g, " ").slice(0, 200) })
      }
    }
}
