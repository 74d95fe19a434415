import { describeError } from "../host/log.ts"
import { type LedgerLearning, parseLearningsJson } from "./learning-json.ts"
import type { CallOptions, LedgerWrite } from "./ledger.ts"

export type NewLearning = {
  /** prog's name of the project. */
  readonly project: string
  readonly summary: string
  readonly detail: string
  /** At least one. */
  readonly concepts: readonly string[]
  readonly files: readonly string[]
}

export type LearningsRead =
  | { readonly kind: "found"; readonly learnings: readonly LedgerLearning[] }
  | { readonly kind: "unavailable"; readonly reason: string; readonly answered?: boolean }

/** The learnings of the ledger. No call throws; each has its deadline. */
export type LearningLedger = {
  /** All of a project, the stale ones too, the newest first. Default deadline 2 s. */
  readLearnings(project: string, options?: CallOptions): Promise<LearningsRead>
  addLearning(learning: NewLearning): Promise<LedgerWrite>
  editLearning(id: string, detail: string): Promise<LedgerWrite>
  /** Keeps it, and shows it to nobody who does not ask for stale ones. */
  retireLearning(id: string, reason: string): Promise<LedgerWrite>
}

/** What a call of the ledger's program came to. */
export type LedgerAnswer =
  | { readonly kind: "exited"; readonly exitCode: number; readonly stdout: string; readonly stderr: string }
  | { readonly kind: "unavailable"; readonly reason: string }

export type LearningCallDeps = {
  readonly read: (args: readonly string[], options: CallOptions | undefined) => Promise<LedgerAnswer>
  readonly write: (args: readonly string[]) => Promise<LedgerWrite>
}

export const createLearningCalls = ({ read, write }: LearningCallDeps): LearningLedger => ({
  readLearnings: async (project, options) => {
    const answer = await read(["context", "-p", project, "--summary", "--include-stale", "--json"], options)
    if (answer.kind === "unavailable") return answer
    if (answer.exitCode !== 0) {
      const reason = `prog context exited with ${answer.exitCode}: ${answer.stderr.trim().slice(0, 300)}`
      return { kind: "unavailable", reason, answered: true }
    }
    try {
      return { kind: "found", learnings: await parseLearningsJson(answer.stdout) }
    } catch (error) {
      return { kind: "unavailable", reason: `prog context printed no list: ${describeError(error)}`, answered: true }
    }
  },
  addLearning: ({ project, summary, detail, concepts, files }) => {
    const lists = [...concepts.flatMap((name) => ["-c", name]), ...files.flatMap((path) => ["-f", path])]
    return write(["learn", "-p", project, ...lists, "--detail", detail, "--", summary])
  },
  editLearning: (id, detail) => write(["learn", "edit", "--detail", detail, "--", id]),
  retireLearning: (id, reason) => write(["learn", "stale", "--reason", reason, "--", id]),
})
