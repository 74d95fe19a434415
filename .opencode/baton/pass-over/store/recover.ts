import { describeError, type Log } from "../../host/log.ts"
import { createProcessRunner } from "../../host/process.ts"
import { loadZod } from "../../host/schema.ts"
import type { Sessions, StoredMessage } from "../../host/sessions.ts"
import type { StateFolder } from "../../host/state.ts"
import { RETURN_TOOL } from "../agents.ts"
import { createAuditLog } from "../audit/log.ts"
import type { Outcome } from "../child/active-pass.ts"
import { passOverError } from "../errors.ts"
import {
  buildWorkOutput,
  CHILD_MESSAGES,
  changedPaths,
  MAX_REFUSED_RETURNS,
  validateReturn,
} from "../result/work-output.ts"
import { toProjectValue } from "../sandbox/paths.ts"
import type { Refusal } from "../sandbox/repository.ts"
import { type Changes, createSandboxes, NO_CHANGES, type Sandboxes } from "../sandbox/sandbox.ts"
import { createPasses, type Passes } from "./passes.ts"
import { isOpen, needsAnnouncement, type PassRecord } from "./record.ts"
import { createPassOwners, createPassStore, type PassOwners, type PassStore } from "./store.ts"

type RecoverDeps = {
  readonly store: Pick<PassStore, "idsUnfinished" | "read" | "removeUnwritten">
  readonly passes: Pick<Passes, "transition">
  readonly sandboxes: Pick<Sandboxes, "collect" | "pathOf">
  readonly sessions: Pick<Sessions, "messages">
  readonly owners: Pick<PassOwners, "isOwned">
  /** Adds a result to the task's log and shows it on the screen. */
  readonly recordResult: (record: PassRecord) => Promise<void>
  readonly log: Log
  readonly now: () => Date
}

const INTERRUPTED = passOverError("E011", {
  message: "OpenCode ended while the subagent worked",
  cause: "The process that worked on the pass is gone",
})

/** Finds the return that a child made before its process ended. */
const findReturned = async (
  messages: readonly StoredMessage[],
  sandbox: string,
  originator: string,
): Promise<Outcome | undefined> => {
  const calls = messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === "tool" && part.tool === RETURN_TOOL ? [part.state] : [])),
  )
  const input = calls.findLast(({ status }) => status === "completed")?.input
  if (!input) return undefined
  const checked = validateReturn(await loadZod(), toProjectValue(input, sandbox), {
    originator,
    earlierRefusals: MAX_REFUSED_RETURNS,
  })
  return checked.kind === "accepted" ? checked : undefined
}

/** @returns a child's changes, none for a pass without the right to change files; a refusal when they are unknown now */
const findChanges = async (sandboxes: RecoverDeps["sandboxes"], id: string): Promise<Changes | Refusal> => {
  const changes = await sandboxes.collect(id)
  return changes.kind === "refused" && changes.code === "unknown-pass" ? NO_CHANGES : changes
}

/** Takes back an apply that a crash cut off. */
const undoInterrupted = async ({ sandboxes, log }: RecoverDeps, { request, state }: PassRecord): Promise<void> => {
  if (!("undecided" in state) || state.undecided.length === 0) return
  const changes = await findChanges(sandboxes, request.pass_over_id)
  if (changes.kind === "refused")
    log.warn("the files of a pass cannot be looked at", { pass: request.pass_over_id, reason: changes.reason })
  else if (changes.recovered.length > 0)
    log.warn("an apply was cut off", { pass: request.pass_over_id, recovered: changes.recovered })
}

/** @returns the pass with its result; undefined when it is left open for the next start */
const recoverOne = async (deps: RecoverDeps, record: PassRecord): Promise<PassRecord | undefined> => {
  const { passes, sandboxes, sessions, log, now } = deps
  const { request, child_session_id: childSessionID, attempts } = record
  const id = request.pass_over_id
  const answer = childSessionID === null ? undefined : await sessions.messages(childSessionID, CHILD_MESSAGES)
  if (answer?.kind === "failed" && !answer.missing) {
    log.warn("a pass is left open: its session cannot be read", { pass: id, reason: answer.reason })
    return undefined
  }
  const changes = await findChanges(sandboxes, id)
  if (changes.kind === "refused") {
    log.warn("a pass is left open: its files cannot be stored", { pass: id, reason: changes.reason })
    return undefined
  }
  const messages = answer?.kind === "ok" ? answer.value.messages : []
  const sandbox = sandboxes.pathOf(id)
  const output = buildWorkOutput({
    request,
    childSessionID,
    attempts,
    end: { kind: "crashed", error: INTERRUPTED },
    cancelReason: undefined,
    outcome: await findReturned(messages, sandbox, request.originating_agent_id),
    setUpError: undefined,
    messages,
    changes,
    sandbox,
    completedAt: now().toISOString(),
  })
  const paths = changedPaths(output)
  // The originator no longer waits, so it is a late result: announced, and never applied automatically.
  await passes.transition(id, { type: "timed_out" })
  const moved = await passes.transition(id, { type: "returned", paths }, { output })
  log.warn("a pass was left in the middle and is brought to its end", { pass: id, files: paths.length })
  if (moved.kind === "refused") return undefined
  await deps.recordResult(moved.record)
  return moved.record
}

/**
 * Completes passes whose process died: the child's text and changes become the result, and nothing is lost. A pass that cannot be
 * completed now stays open and does not block the others.
 *
 * @returns passes that have to be announced to their originators
 */
export const recoverPasses = async (deps: RecoverDeps): Promise<PassRecord[]> => {
  const { store, owners, log } = deps
  const unannounced: PassRecord[] = []
  for (const id of store.idsUnfinished()) {
    try {
      const isOwned = await owners.isOwned(id)
      // Read after that: a pass of a running process may have ended in between.
      const record = await store.read(id)
      if (!record && !isOwned) await store.removeUnwritten(id)
      if (!record) continue
      const isAbandoned = !isOwned && isOpen(record.state)
      const ended = isAbandoned ? await recoverOne(deps, record) : record
      if (!isOwned && !isAbandoned) await undoInterrupted(deps, record)
      if (ended && needsAnnouncement(ended)) unannounced.push(ended)
    } catch (error) {
      log.error("a pass is left open: it could not be brought to its end", { pass: id, error: describeError(error) })
    }
  }
  return unannounced
}

/**
 * Opens what a project has stored of its passes: records, owners, audit and files.
 *
 * @param directory OpenCode's, which a sandbox is made of
 */
export const openStoredPasses = (given: {
  readonly projectRoot: string
  readonly directory: string
  readonly state: StateFolder
  readonly log: Pick<Log, "debug" | "warn">
}) => {
  const { projectRoot, directory, state, log } = given
  // A pass makes about ten git calls, and each takes twice as long with Bun's `$` on a busy machine.
  const run = createProcessRunner({ shell: undefined })
  const store = createPassStore({ state, log })
  const owners = createPassOwners(state)
  const passes = createPasses({ store, audit: createAuditLog({ projectRoot, log }), now: () => new Date() })
  const sandboxes = createSandboxes({ state, directory, run, owners, passes, log })
  return { store, owners, passes, sandboxes }
}
