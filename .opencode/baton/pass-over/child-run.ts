import { createDeferred, withDeadline } from "../host/async.ts"
import type { ChildSessions, PermissionRule, Prompt } from "../host/child-sessions.ts"
import type { Log } from "../host/log.ts"
import type { Answer, StoredMessage } from "../host/sessions.ts"
import { type PassOverError, passOverError } from "./errors.ts"
import { abortTree } from "./session-tree.ts"

/** How long a child that was told to stop may take for it, and how often it is told. */
const STOP_GRACE_MS = 5_000
const STOP_AGAIN_MS = 250
/** How long a child may speak on after its work is over. */
const CLOSING_MS = 60_000

export type ChildEnd =
  /** Its work is over by itself. */
  | { readonly kind: "ended" }
  | { readonly kind: "crashed"; readonly error: PassOverError }
  /** It was aborted, by the pass or by a person. */
  | { readonly kind: "stopped" }

export type ChildOrder = {
  readonly parentID: string
  readonly title: string
  readonly permission: readonly PermissionRule[]
  readonly prompt: Prompt
  /** Its work is over before its turn is: what it says from then on is not waited for. */
  readonly atRest: Promise<unknown>
  /** Ends the child and everything below it. */
  readonly signal: AbortSignal
  /** Called before the child begins to work; it works while what this stores is being stored. */
  readonly onSession: (sessionID: string) => Promise<void>
  /** Called when the child's turn is over, which may be after this program has stopped waiting for it. */
  readonly onTurnOver: (sessionID: string) => void
}

const crashed = (message: string, cause: string): ChildEnd => ({
  kind: "crashed",
  error: passOverError("E011", { message, cause }),
})

const describeModelError = (error: { name: string; data: Record<string, unknown> }): string => {
  const { message } = error.data
  return `${error.name}${typeof message === "string" ? `: ${message}` : ""}`.slice(0, 500)
}

/** OpenCode forgets an abort that comes while a prompt is still being stored, so that it is said until the turn has ended. */
const endTurn = async (
  { sessions, log }: { sessions: ChildSessions; log: Log },
  sessionID: string,
  turn: Promise<unknown>,
): Promise<void> => {
  const over = performance.now() + STOP_GRACE_MS
  while (performance.now() < over) {
    await abortTree(sessions, sessionID, log)
    const ended = await withDeadline(turn, STOP_AGAIN_MS)
    if (ended.kind !== "late") return
  }
  log.warn("a child session did not end when it was told to", { sessionID })
}

/** Whatever comes first: one of these, or the abort. */
const firstOf = async <T>(promises: readonly Promise<T>[], signal: AbortSignal): Promise<T | { kind: "stopped" }> => {
  const stopped = createDeferred<{ kind: "stopped" }>()
  const stop = (): void => stopped.resolve({ kind: "stopped" })
  signal.addEventListener("abort", stop, { once: true })
  if (signal.aborted) stop()
  try {
    return await Promise.race([...promises, stopped.promise])
  } finally {
    signal.removeEventListener("abort", stop)
  }
}

/** A child at rest ends its turn by itself, or is ended like one at work. */
const letSpeak = async (
  deps: { sessions: ChildSessions; log: Log },
  { sessionID, turn, signal }: { sessionID: string; turn: Promise<unknown>; signal: AbortSignal },
): Promise<void> => {
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(), CLOSING_MS)
  timer.unref()
  const over = turn.then(() => ({ kind: "over" as const }))
  const first = await firstOf([over], AbortSignal.any([signal, limit.signal]))
  clearTimeout(timer)
  if (first.kind === "stopped") await endTurn(deps, sessionID, turn)
}

/** Creates a child session, lets its agent work, and waits for the end of its work. Never throws. */
export const runChild = async (
  { sessions, log }: { sessions: ChildSessions; log: Log },
  order: ChildOrder,
): Promise<ChildEnd> => {
  const { signal, prompt } = order
  if (signal.aborted) return { kind: "stopped" }
  const created = await sessions.create(order)
  if (created.kind === "failed") return crashed("The child session could not be created", created.reason)
  const sessionID = created.value
  const noted = order.onSession(sessionID)
  const turn = sessions.prompt(sessionID, prompt).finally(() => order.onTurnOver(sessionID))
  try {
    await noted
  } catch (error) {
    // A child that nobody knows of must not work.
    await endTurn({ sessions, log }, sessionID, turn)
    throw error
  }
  const first = await firstOf<{ kind: "over"; answer: Answer<StoredMessage> } | { kind: "at-rest" }>(
    [turn.then((answer) => ({ kind: "over", answer })), order.atRest.then(() => ({ kind: "at-rest" }))],
    signal,
  )
  if (first.kind === "stopped") {
    await endTurn({ sessions, log }, sessionID, turn)
    return { kind: "stopped" }
  }
  if (first.kind === "at-rest") {
    void letSpeak({ sessions, log }, { sessionID, turn, signal })
    return { kind: "ended" }
  }
  const { answer } = first
  if (answer.kind === "failed") return crashed("The subagent's turn failed", answer.reason)
  const { info } = answer.value
  const error = info.role === "assistant" ? info.error : undefined
  if (!error) return { kind: "ended" }
  if (error.name === "MessageAbortedError") return { kind: "stopped" }
  return crashed("The subagent's model gave an error", describeModelError(error))
}
