import { lstat } from "node:fs/promises"
import type { core, infer as Infer } from "zod"
import { describeError, isNotFound } from "../../host/log.ts"
import { loadZod, type Zod } from "../../host/schema.ts"
import { cutText } from "../../host/text.ts"
import { readProjectConfig } from "../../host/untrusted.ts"
import { type Immutable, policyPartSchema } from "../contract.ts"
import { type PassOverError, passOverError } from "../errors.ts"
import { POLICY_FILE, policyPath } from "./policy-path.ts"

type Parsed = Infer<ReturnType<typeof policyPartSchema>>
export type PolicyKey = keyof Parsed
/** resolve.ts tells where each value comes from. */
export type Policy = { readonly [Key in PolicyKey]-?: NonNullable<Parsed[Key]> }
export type PolicyPart = { readonly [Key in PolicyKey]?: Policy[Key] | undefined }

/**
 * Values where no level sets one. All but two are the design document's: its time-out of 30 s is too short for a real model that
 * reads files, and it has no maximum time for a subagent that continues.
 */
export const BUILT_IN_POLICY: Policy = {
  auto_return: false,
  auto_apply: false,
  timeout_ms: 600_000,
  on_timeout: "continue",
  max_chain_depth: 3,
  notify_on_return: "always",
  can_receive_passes: true,
  can_modify_files: true,
  can_run_tools: true,
  sandbox: "copy",
  max_time_ms: 1_800_000,
  cache: false,
  max_retries: 3,
  retry_delay_ms: 1000,
  backoff_multiplier: 2,
  max_passes_per_session: 50,
  max_context_tokens: 50_000,
}

const DEFAULT_RETENTION_DAYS = 90

/** The whole file: every key is optional, unknown keys are refused. */
export const policyFileSchema = (z: Zod) => {
  const part = policyPartSchema(z)
  const agent = z.string().min(1)
  const pair = z.string().regex(/^[^\s>](?:[^>]*[^\s>])?->[^\s>](?:[^>]*[^\s>])?$/, 'Expected "originator->subagent"')
  const auditLog = z.strictObject({
    enabled: z.boolean().default(true).describe("Whether passes are recorded in .opencode/pass-over-logs"),
    retention_days: z
      .number()
      .int()
      .min(1)
      .max(36_500)
      .default(DEFAULT_RETENTION_DAYS)
      .describe("How long a record is kept at least"),
  })
  return z
    .strictObject({
      $schema: z.string().optional(),
      defaults: part.prefault({}).describe("For every pass"),
      pairs: z
        .record(pair, part)
        .default({})
        .describe("For passes from one agent to another: originator->subagent; * is any agent"),
      subagents: z.record(agent, part).default({}).describe("For passes to one agent, from any agent"),
      audit_log: auditLog.prefault({}),
    })
    .transform(({ defaults, pairs, subagents, audit_log }) => ({ defaults, pairs, subagents, audit_log }))
}

export type PolicyFile = Immutable<Infer<ReturnType<typeof policyFileSchema>>>

/** The value of an empty file, also used for a missing one, without loading zod. */
const NO_POLICY: PolicyFile = {
  defaults: {},
  pairs: {},
  subagents: {},
  audit_log: { enabled: true, retention_days: DEFAULT_RETENTION_DAYS },
}

type PolicyRead =
  | { readonly kind: "policy"; readonly file: PolicyFile /** There is no file. */; readonly isMissing: boolean }
  | { readonly kind: "unusable"; readonly error: PassOverError }

const unusable = (path: string, line: number | undefined, cause: string): PolicyRead => ({
  kind: "unusable",
  error: passOverError("E030", {
    message: `${path}${line === undefined ? "" : `:${line}`} is not a policy, so that nothing is passed`,
    cause,
  }),
})

/** Renders a path in the file for the user: `pairs."a->b".timeout_ms`. */
const renderPath = (path: readonly PropertyKey[]): string =>
  path.map((key) => (/^[\w$]+$/.test(String(key)) ? String(key) : JSON.stringify(String(key)))).join(".")

/** The line of a key, from 1: each key of the path is looked for behind the one above it. */
const lineOf = (text: string, path: readonly PropertyKey[]): number => {
  const end = path.reduce<number>((from, key) => {
    const at = text.indexOf(JSON.stringify(String(key)), from)
    return at < 0 ? from : at
  }, 0)
  return text.slice(0, end).split("\n").length
}

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (found, key) => (typeof found === "object" && found !== null ? Reflect.get(found, key) : undefined),
    value,
  )

const shown = (value: unknown): string => cutText(JSON.stringify(value) ?? "nothing", 80)

const describeIssue = (text: string, value: unknown, issue: core.$ZodIssue): { line: number; cause: string } => {
  // An unknown key is reported as an issue of its parent object; the line shown is the key's own.
  const unknown = issue.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : []
  const path = [...issue.path, ...unknown]
  const isBadKey = issue.code === "invalid_key"
  const expected = (isBadKey ? issue.issues[0]?.message : undefined) ?? issue.message
  const received = isBadKey ? shown(path.at(-1)) : shown(valueAt(value, path))
  const where = path.length === 0 ? "" : `${renderPath(path)}: `
  return { line: lineOf(text, path), cause: `${where}${expected}, received ${received}` }
}

/** @param path as shown to the user */
export const parsePolicy = (z: Zod, text: string, path: string = POLICY_FILE): PolicyRead => {
  let value: unknown
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ""))
  } catch (error) {
    return unusable(path, undefined, describeError(error))
  }
  const parsed = policyFileSchema(z).safeParse(value)
  if (parsed.success) return { kind: "policy", file: parsed.data, isMissing: false }
  const [issue] = parsed.error.issues
  if (!issue) return unusable(path, 1, "it is not valid")
  const { line, cause } = describeIssue(text, value, issue)
  return unusable(path, line, cause)
}

/**
 * Reads the policy; called for each pass. A file that cannot be used is an error, never the defaults, which could allow what it
 * forbids.
 *
 * @param projectRoot absolute path of the folder that holds `.opencode`
 * @param path of the policy's file
 * @throws when there is a file and zod cannot be loaded
 */
export const readPolicy = async (projectRoot: string, path = policyPath(projectRoot)): Promise<PolicyRead> => {
  let text: string
  try {
    text = readProjectConfig(projectRoot, path).toString("utf8")
  } catch (error) {
    // A dangling link is a policy that cannot be read, not a missing one.
    const isLink = await lstat(path).then(
      () => true,
      () => false,
    )
    if (isNotFound(error) && !isLink) return { kind: "policy", file: NO_POLICY, isMissing: true }
    return unusable(POLICY_FILE, undefined, describeError(error))
  }
  return parsePolicy(await loadZod(), text)
}

/**
 * Reads the policy of a project that had one at OpenCode's start. A file missing now, as between two writes of an editor, is an
 * error: it must not become a policy that allows everything.
 *
 * @throws as `readPolicy`
 */
export const readPolicyInUse = async (projectRoot: string, path: string): Promise<PolicyRead> => {
  const read = await readPolicy(projectRoot, path)
  return read.kind === "policy" && read.isMissing
    ? unusable(POLICY_FILE, undefined, "It was there when OpenCode started, and is gone")
    : read
}
