import { createHash } from "node:crypto"
import type { WorkContext, WorkOutput } from "./contract.ts"

export type Question = {
  readonly subagent: string
  /** What the subagent is (its prompt, model and permissions), so that a changed one is asked anew. */
  readonly definition: string
  readonly context: Pick<WorkContext, "objective" | "background" | "expected" | "files">
}

/**
 * The same for the same question: subagent, objective and contents of the named files, in whatever order they are named.
 *
 * @returns SHA-256, hex; null when a file could not be read, since nobody knows then whether it is the same question
 */
export const cacheKeyOf = ({ subagent, definition, context }: Question): string | null => {
  const { objective, background = "", expected = "" } = context
  const files = context.files.map(({ path, hash }) => [path, hash] as const)
  if (files.some(([, hash]) => hash === null)) return null
  const sorted = files.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  const question = JSON.stringify([1, subagent, definition, objective, background, expected, sorted])
  return createHash("sha256").update(question).digest("hex")
}

/** Whether an output may answer the question again: it is whole, and it is an answer and not a change of files. */
export const isRepeatable = ({ status, artifacts, left_out }: WorkOutput): boolean =>
  status === "completed" && left_out.length === 0 && artifacts.every(({ type }) => type !== "file_modification")
