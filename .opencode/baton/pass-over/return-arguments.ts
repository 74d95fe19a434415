import type { core } from "zod"
import type { Zod } from "../host/schema.ts"
import { contractSchemas, type ReturnArguments } from "./contract.ts"
import { type PassOverError, passOverError } from "./errors.ts"

/** An invalid return is refused this often with what is wrong; the next one ends the pass. */
export const MAX_REFUSED_RETURNS = 2
const SHOWN_PROBLEMS = 5

export type ReturnCheck =
  | {
      readonly kind: "accepted"
      readonly value: ReturnArguments
      /** Claims that count for nothing, since the program sees to them: `file_modification src/a.ts`. */
      readonly ignored: readonly string[]
    }
  /** @property text for the subagent: what is wrong, and how often it may try again */
  | { readonly kind: "refused"; readonly text: string }
  | { readonly kind: "failed"; readonly error: PassOverError }

/** Models write null, and some an empty text, where they mean nothing. */
const withoutNothing = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.filter((each) => each !== null).map(withoutNothing)
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).filter(([, each]) => each !== null && each !== "")
  return Object.fromEntries(entries.map(([key, each]) => [key, withoutNothing(each)]))
}

const SEEN_BY_PROGRAM: ReadonlySet<unknown> = new Set(["file_modification", "tool_result"])

const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined

const splitClaims = (value: unknown): { rest: unknown; ignored: string[] } => {
  const artifacts = field(value, "artifacts")
  if (typeof value !== "object" || !Array.isArray(artifacts)) return { rest: value, ignored: [] }
  const isClaim = (artifact: unknown): boolean => SEEN_BY_PROGRAM.has(field(artifact, "type"))
  const ignored = artifacts.filter(isClaim).map((artifact) => {
    const what = field(artifact, "path") ?? field(artifact, "tool")
    return `${String(field(artifact, "type"))}${typeof what === "string" ? ` ${what}` : ""}`
  })
  return { rest: { ...value, artifacts: artifacts.filter((artifact) => !isClaim(artifact)) }, ignored }
}

const describeProblem = ({ path, message }: core.$ZodIssue): string =>
  `- ${path.length === 0 ? "the arguments" : path.map(String).join(".")}: ${message}`

/**
 * Checks what a subagent returns.
 *
 * @param args as they came, of any shape
 * @param earlierRefusals how many returns of this pass were refused before
 */
export const checkReturn = (z: Zod, args: unknown, earlierRefusals: number): ReturnCheck => {
  const { rest, ignored } = splitClaims(withoutNothing(args))
  const parsed = contractSchemas(z).returnArguments.safeParse(rest)
  if (parsed.success) return { kind: "accepted", value: parsed.data, ignored }
  const { issues } = parsed.error
  const more = issues.length > SHOWN_PROBLEMS ? [`- and ${issues.length - SHOWN_PROBLEMS} more`] : []
  const problems = [...issues.slice(0, SHOWN_PROBLEMS).map(describeProblem), ...more].join("\n")
  const left = MAX_REFUSED_RETURNS - earlierRefusals
  if (left > 0) {
    const again = left === 1 ? "once more" : `${left} times more`
    const text = `This is not a valid return:\n${problems}\nCall pass_over_return again with this mended; you may try ${again}.`
    return { kind: "refused", text }
  }
  const message = `The subagent's return was not valid ${earlierRefusals + 1} times`
  return { kind: "failed", error: passOverError("E021", { message, cause: problems.replaceAll("\n", " ") }) }
}
