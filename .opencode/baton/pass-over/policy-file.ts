import { lstat, readFile } from "node:fs/promises"
import { join } from "node:path"
import type { core, infer as Infer } from "zod"
import { describeError, isAbsent } from "../host/log.ts"
import { loadZod, type Zod } from "../host/schema.ts"
import { type PassOverError, passOverError } from "./errors.ts"
import { type LocatedJSON, parseLocatedJSON } from "./located-json.ts"
import { policyPartSchema } from "./policy.ts"
import { POLICY_FILE } from "./policy-path.ts"

const DEFAULT_RETENTION_DAYS = 90

/** The whole file; everything in it may be left out, nothing else may be in it. */
export const policyFileSchema = (z: Zod) => {
  const part = policyPartSchema(z)
  const agent = z.string().min(1)
  const pair = z.string().regex(/^[^\s>](?:[^>]*[^\s>])?->[^\s>](?:[^>]*[^\s>])?$/, 'Expected "originator->subagent"')
  return z.strictObject({
    $schema: z.string().optional(),
    defaults: part.prefault({}).describe("For every pass"),
    pairs: z.record(pair, part).default({}).describe("For passes from one agent to another: originator->subagent"),
    subagents: z.record(agent, part).default({}).describe("For passes to one agent, whoever makes them"),
    audit: z
      .strictObject({
        enabled: z.boolean().default(true).describe("Whether passes are recorded in .opencode/pass-over-logs"),
        retention_days: z
          .number()
          .int()
          .min(1)
          .max(36_500)
          .default(DEFAULT_RETENTION_DAYS)
          .describe("How long a record is kept at least"),
      })
      .prefault({}),
  })
}

export type PolicyFile = Infer<ReturnType<typeof policyFileSchema>>

/** What an empty file says; for one that is not there nothing has to be loaded. */
const NO_POLICY: PolicyFile = {
  defaults: {},
  pairs: {},
  subagents: {},
  audit: { enabled: true, retention_days: DEFAULT_RETENTION_DAYS },
}

export type PolicyRead =
  | { readonly kind: "policy"; readonly file: PolicyFile /** Whether there is no file. */; readonly isAbsent: boolean }
  | { readonly kind: "unusable"; readonly error: PassOverError }

const unusable = (path: string, line: number | undefined, cause: string): PolicyRead => ({
  kind: "unusable",
  error: passOverError("E030", {
    message: `${path}${line === undefined ? "" : `:${line}`} is not a policy, so that nothing is passed`,
    cause,
  }),
})

type Located = Extract<LocatedJSON, { kind: "value" }>

/** What one path in the file is, for a person: `pairs."a->b".timeout_ms`. */
const renderPath = (path: readonly PropertyKey[]): string =>
  path.map((key) => (/^[\w$]+$/.test(String(key)) ? String(key) : JSON.stringify(String(key)))).join(".")

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (found, key) => (typeof found === "object" && found !== null ? Reflect.get(found, key) : undefined),
    value,
  )

const shown = (value: unknown): string => (JSON.stringify(value) ?? "nothing").slice(0, 80)

const describeIssue = ({ value, lineOf }: Located, issue: core.$ZodIssue): { line: number; cause: string } => {
  // An unknown key is an issue of the object around it; the line wanted is the key's own.
  const unknown = issue.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : []
  const path = [...issue.path, ...unknown]
  const line = lineOf(path.map((key) => (typeof key === "symbol" ? String(key) : key)))
  const isBadKey = issue.code === "invalid_key"
  const expected = (isBadKey ? issue.issues[0]?.message : undefined) ?? issue.message
  const received = isBadKey ? shown(path.at(-1)) : shown(valueAt(value, path))
  return { line, cause: `${path.length === 0 ? "" : `${renderPath(path)}: `}${expected}, received ${received}` }
}

/** @param path as it is shown to the user */
export const parsePolicy = (z: Zod, text: string, path: string = POLICY_FILE): PolicyRead => {
  const located = parseLocatedJSON(text.replace(/^\uFEFF/, ""))
  if (located.kind === "malformed") return unusable(path, located.line, located.reason)
  const parsed = policyFileSchema(z).safeParse(located.value)
  if (parsed.success) return { kind: "policy", file: parsed.data, isAbsent: false }
  const [issue] = parsed.error.issues
  if (!issue) return unusable(path, 1, "it is not valid")
  const { line, cause } = describeIssue(located, issue)
  return unusable(path, line, cause)
}

/**
 * Reads the policy, anew at each pass. A file that is there and cannot be used is an error and never the defaults, which
 * could allow what it forbids.
 *
 * @param projectRoot absolute path of the folder that holds `.opencode`
 * @throws when there is a file and zod cannot be loaded
 */
export const readPolicy = async (projectRoot: string): Promise<PolicyRead> => {
  const path = join(projectRoot, POLICY_FILE)
  let text: string
  try {
    text = await readFile(path, "utf8")
  } catch (error) {
    // A link that leads nowhere is a policy that cannot be read, not one that nobody wrote.
    const isLink = await lstat(path).then(
      () => true,
      () => false,
    )
    if (isAbsent(error) && !isLink) return { kind: "policy", file: NO_POLICY, isAbsent: true }
    return unusable(POLICY_FILE, undefined, describeError(error))
  }
  return parsePolicy(await loadZod(), text)
}

/**
 * Reads the policy of a project that passes work over. It asked for that by the file; one that is gone meanwhile, as between
 * two writes of an editor, is no policy that allows everything.
 *
 * @throws as `readPolicy`
 */
export const readPolicyInUse = async (projectRoot: string): Promise<PolicyRead> => {
  const read = await readPolicy(projectRoot)
  return read.kind === "policy" && read.isAbsent
    ? unusable(POLICY_FILE, undefined, "It was there when OpenCode started, and is gone")
    : read
}
