import { readGitState } from "../host/git.ts"
import type { Log } from "../host/log.ts"
import { untrusted } from "../host/quoted.ts"
import type { Sessions } from "../host/sessions.ts"
import type { Notices } from "../host/tui.ts"
import { splitHandoffs } from "../ledger/description.ts"
import type { Ledger, LedgerTask, TaskClaim } from "../ledger/ledger.ts"
import type { Facts } from "../task/activity.ts"
import { builtInProtocol, extractProtocol, type PromptFiles, tellUnused } from "../task/prompts.ts"
import type { SessionTask } from "../task/registry.ts"
import type { ClaimsMode } from "./claims.ts"
import type { SessionState } from "./session-state.ts"
import type { OtherClaim, TaskIdentity } from "./texts.ts"

/**
 * The summariser's instructions for when prompts/handoff.md cannot be used: the same headings, fewer words.
 *
 * The summariser has no tools, so nothing here asks it to run anything.
 */
export const DEFAULT_HANDOFF_PROMPT = `# Write the handoff

The conversation is about to be dropped. Another agent goes on with the same task and knows only what you write now.
You have no tools: answer with the handoff alone. Carry over everything in the earlier handoff, if one is given, that is
still true. Keep ids, paths, commands, error messages and numbers exactly, and the user's demands in the user's words.
Of a secret, write where it is kept, never its value. Write "unknown" rather than guess. Terse bullets under these
headings, all of them, in this order; an empty one says "none".

## Done
What is finished, and how it was seen to work.

## In progress
What was begun, and the exact point it has reached.

## Files being changed
Path, what changes and why; committed or not.

## Next
The next steps in order; the first can be started at once.

## Tried and failed
What was tried, the error word for word, why; hypotheses ruled out.

## Constraints and decisions that must persist
What the user, the specification or the project demands or forbids; the user's newest word counts. Never shorten this list.

## Technical decisions and why
What was chosen, the reason, what was rejected.

## Protocol state
Task ID, role, state, last checkpoint; stuck or blocked on what.

## Recording
Tell the continuing agent: this handoff is already recorded; go on with \`prog log ID "…"\` for each step. \`prog desc\`
replaces the whole description: only to correct its handoff section, with the specification left word for word.
`

export type ContextDeps = {
  sessions: Pick<Sessions, "todos" | "messages">
  ledger: Pick<Ledger, "readTask">
  prompts: Pick<PromptFiles, "read">
  /** Reads the setting. */
  claimsMode: () => Promise<ClaimsMode>
  isIdleOn: (taskID: string, sessionID: string) => Promise<boolean>
  notices: Notices
  /** The worktree's top folder, or the project's where there is no git. */
  root: string
  log: Log
}

/** The material for a compaction's texts. Each part has a fallback of its own. */
export type CompactionContext = {
  identity: TaskIdentity
  logs: LedgerTask["logs"]
  facts: Facts
  /** The handoffs in the task's description, the newest first. */
  handoffs: readonly string[]
}

const LEDGER_DEADLINE_MS = 2_000

export type FactsDeps = Pick<ContextDeps, "sessions" | "root" | "log">

type IdentityDeps = Pick<ContextDeps, "ledger" | "prompts" | "claimsMode" | "isIdleOn" | "notices" | "log">

/**
 * @returns undefined for a claim of the session's own, for a child, whose claim is its parent's, and for one of an idle session here, which
 * gives it up
 */
const findOtherClaim = async (
  { claimsMode, isIdleOn }: Pick<ContextDeps, "claimsMode" | "isIdleOn">,
  { sessionID, taskID, origin }: SessionTask,
  claim: TaskClaim | undefined,
): Promise<OtherClaim | undefined> => {
  if (!claim || claim.isOwn || claim.session === sessionID || origin === "parent") return undefined
  const mode = await claimsMode()
  if (mode === "off" || (await isIdleOn(taskID, claim.session))) return undefined
  return { ...claim, isExclusive: mode === "exclusive" }
}

/** Only a role's heading brings its protocol. */
const readProtocol = (deps: IdentityDeps, binding: SessionTask): string => {
  const { taskID, role, hasRoleHeading, sessionID } = binding
  if (!hasRoleHeading) return ""
  const file = deps.prompts.read(role)
  if (file.kind === "text") {
    const protocol = extractProtocol(file.text, { taskID })
    if (protocol !== undefined) return protocol
    deps.log.warn("role prompt has no protocol section: built-in text used", { sessionID, role })
  } else tellUnused(deps, file, { sessionID, prompt: "role", text: "protocol" })
  return builtInProtocol(role, { taskID })
}

const readTodos = async (deps: FactsDeps, sessionID: string): Promise<Facts["todos"]> => {
  const answer = await deps.sessions.todos(sessionID)
  if (answer.kind === "ok") return answer.value
  deps.log.warn("todos unknown", { sessionID, reason: answer.reason })
  return []
}

const readGit = async (deps: FactsDeps, sessionID: string): Promise<Facts["git"]> => {
  const git = await readGitState(deps.root)
  if (!git) deps.log.debug("git state unknown", { sessionID })
  return git
}

/** A session's task as ledger and prompts have it. */
export type KnownTask = {
  identity: TaskIdentity
  /** The handoffs in the task's description, the newest first. */
  handoffs: readonly string[]
  logs: LedgerTask["logs"]
  /** Why the ledger could not be asked. */
  failure?: string | undefined
  /** The path at which the ledger's database should be. */
  missingDatabase?: string | undefined
}

/** Reads ledger and protocol. */
export const readKnownTask = async (
  deps: IdentityDeps,
  binding: SessionTask,
  deadlineMs = LEDGER_DEADLINE_MS,
): Promise<KnownTask> => {
  const { sessionID, taskID, role, said, order } = binding
  const read = await deps.ledger.readTask(taskID, { deadlineMs, withClaim: true })
  if (read.kind !== "found") {
    const reason = read.kind === "unknown" ? `the ledger has no task ${taskID}` : read.reason
    deps.log.warn("task not read from the ledger", { sessionID, taskID, reason })
  }
  const protocol = readProtocol(deps, binding)
  const known = { taskID, role, said, protocol, order, hasShell: true }
  if (read.kind === "unknown") return { identity: { ...known, ledger: "unknown" }, handoffs: [], logs: [] }
  if (read.kind === "unavailable") {
    const { reason: failure, missingDatabase } = read
    return { identity: known, handoffs: [], logs: [], failure, missingDatabase }
  }
  const { title, status, definitionOfDone, description, logs } = read.task
  const { specification, handoffs } = splitHandoffs(description.untrusted)
  const ledger = { title, status, definitionOfDone, specification: untrusted(specification) }
  const claim = await findOtherClaim(deps, binding, read.task.claim)
  return { identity: { ...known, ledger, claim }, logs, handoffs }
}

/** Reads todos and git, and adds them to a session's activity. */
export const loadFacts = async (
  deps: FactsDeps,
  sessionID: string,
  { count, activity }: SessionState,
): Promise<Facts> => {
  const [todos, git] = await Promise.all([readTodos(deps, sessionID), readGit(deps, sessionID)])
  return { compactions: count, activity, todos, git }
}

/** Reads ledger, protocol, todos and git side by side. */
export const loadContext = async (
  deps: ContextDeps,
  binding: SessionTask,
  sessionState: SessionState,
): Promise<CompactionContext> => {
  const [{ identity, handoffs, logs }, facts] = await Promise.all([
    readKnownTask(deps, binding),
    loadFacts(deps, binding.sessionID, sessionState),
  ])
  return { identity, logs, facts, handoffs }
}

/** Reads prompts/handoff.md, or gives the built-in text and logs the file and the reason. */
export const readInstructions = (deps: Pick<ContextDeps, "prompts" | "notices" | "log">, sessionID: string): string => {
  const file = deps.prompts.read("handoff")
  if (file.kind === "text") return file.text
  tellUnused(deps, file, { sessionID, prompt: "handoff", text: "text" })
  return DEFAULT_HANDOFF_PROMPT
}
