import { createHash } from "node:crypto"
import { type AuditEvent, type AuditLog, auditEntry, type RefusedPass, refusalOf, refusedEntry } from "../audit/log.ts"
import type { PassOverRequest, WorkContext } from "../contract.ts"
import { type PassOverError, unknownPass } from "../errors.ts"
import { passLimitError } from "../policy/chain.ts"
import type { PolicyFile } from "../policy/policy.ts"
import type { ResolvedPolicy } from "../policy/resolve.ts"
import { nextState, type PassEvent, type PassRecord, type Releaser, SENT } from "./record.ts"
import type { PassStore } from "./store.ts"

export type Question = {
  readonly subagent: string
  /** The subagent's prompt, model and permissions: an agent that changed is asked again. */
  readonly definition: string
  readonly context: WorkContext
}

/**
 * Makes the key of a question: the subagent and all that goes along to it, the named files by their contents and in any order.
 *
 * @returns SHA-256, hex; null when a file could not be read, since the key would then be incomplete
 */
export const cacheKeyOf = ({ subagent, definition, context }: Question): string | null => {
  const { objective, background, expected, messages, tool_results, todos, task } = context
  const files = context.files.map(({ path, hash }) => [path, hash] as const)
  if (files.some(([, hash]) => hash === null)) return null
  const sorted = files.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  const rest = [background, expected, messages, tool_results, todos, task]
  const question = JSON.stringify([2, subagent, definition, objective, rest, sorted])
  return createHash("sha256").update(question).digest("hex")
}

const DAY_MS = 86_400_000

/** Fields that may change along with the state. */
type PassChange = Partial<Pick<PassRecord, "child_session_id" | "output">>

export type Transition =
  | { readonly kind: "moved"; readonly record: PassRecord }
  /** Nothing was changed: the pass does not exist (E023), or its state does not allow the event (E024). */
  | { readonly kind: "refused"; readonly error: PassOverError }

export type BeginPass = {
  readonly request: PassOverRequest
  readonly policy: ResolvedPolicy
  /** null when the policy has no cache, or the files could not be read. */
  readonly cacheKey: string | null
  readonly audit: PolicyFile["audit_log"]
  /** The subagent may change files. */
  readonly canChange: boolean
}

type PassesDeps = {
  readonly store: Pick<PassStore, "create" | "read" | "update" | "keepAnswer" | "removeFinished">
  readonly audit: AuditLog
  readonly now: () => Date
}

/**
 * Changes passes, and is the only way to do so: each state change follows the rules, is on disk, and is in the audit in order.
 * Everything but `refuse`, `attemptFailed` and `withheld`, which are for the audit alone, throws what cannot be stored.
 */
export const createPasses = ({ store, audit, now }: PassesDeps) => {
  const time = (): string => now().toISOString()
  let prunedAt = Number.NEGATIVE_INFINITY

  const note = async (record: PassRecord, happening: AuditEvent): Promise<void> => {
    if (record.is_audited) await audit.append(auditEntry(record, happening))
  }
  /** Removes old passes in the background, once a day. */
  const prune = ({ retention_days: days }: BeginPass["audit"], at: number): void => {
    if (at - prunedAt < DAY_MS) return
    prunedAt = at
    void audit.prune(days, at)
    void store.removeFinished(new Date(at - days * DAY_MS))
  }

  /** Stores the time of the first such event. @returns whether this is the first */
  const stamp = async (passID: string, event: "announced" | "released", by?: Releaser): Promise<boolean> => {
    const field = `${event}_at` as const
    let at = ""
    let isFirst = false
    const set = (before: PassRecord): PassRecord | undefined => {
      at = time()
      isFirst = before[field] === null
      return isFirst ? { ...before, [field]: at, ...(by ? { released_by: by } : {}) } : undefined
    }
    await store.update(passID, set, (after) => note(after, { at, event }))
    return isFirst
  }

  /** @param why the error, when the output does not have it */
  const transition = async (
    passID: string,
    event: PassEvent,
    change: PassChange = {},
    why?: PassOverError,
  ): Promise<Transition> => {
    let at = ""
    let error: PassOverError | undefined
    const move = (before: PassRecord): PassRecord | undefined => {
      at = time()
      const step = nextState(before.state, event)
      error = step.kind === "refused" ? step.error : undefined
      if (step.kind === "refused") return undefined
      const { state } = step.state
      const isNew = state !== before.state.state
      return {
        ...before,
        ...change,
        state: step.state,
        attempts: before.attempts + (event.type === "started" ? 1 : 0),
        history: isNew ? [...before.history, { at, state }] : before.history,
      }
    }
    const record = await store.update(passID, move, (moved) => note(moved, { at, event: event.type, error: why }))
    if (!record) return { kind: "refused", error: unknownPass(passID, "It is not stored here") }
    if (error) return { kind: "refused", error }
    if (event.type === "returned") await store.keepAnswer(record)
    return { kind: "moved", record }
  }

  return {
    /** @returns refused (E004) when the root session has used up its passes */
    begin: async ({ request, policy, cacheKey, audit: settings, canChange }: BeginPass): Promise<Transition> => {
      const at = time()
      const record: PassRecord = {
        version: 1,
        request,
        policy,
        state: SENT,
        history: [{ at, state: SENT.state }],
        attempts: 0,
        child_session_id: null,
        output: null,
        announced_at: null,
        released_at: null,
        released_by: null,
        can_change: canChange,
        cache_key: cacheKey,
        is_audited: settings.enabled,
      }
      const created = await store.create(record)
      if (created.kind === "full") {
        const error = passLimitError(created.passes, policy.values.max_passes_per_session)
        if (settings.enabled) await audit.append(refusedEntry(refusalOf(request), error, at))
        return { kind: "refused", error }
      }
      await note(record, { at, event: "sent" })
      prune(settings, Date.parse(at))
      return { kind: "moved", record }
    },

    /** Notes a pass that was never made. */
    refuse: async (refused: RefusedPass, error: PassOverError): Promise<void> => {
      await audit.append(refusedEntry(refused, error, time()))
    },

    transition,

    /** Notes a failed attempt that is followed by another one. */
    attemptFailed: async (passID: string, error: PassOverError): Promise<void> => {
      const record = await store.read(passID)
      if (record) await note(record, { at: time(), event: "attempt_failed", error })
    },

    /** @returns whether it was announced now; false when it had been before */
    announce: (passID: string) => stamp(passID, "announced"),
    approve: (passID: string, by: Releaser) => stamp(passID, "released", by),
    /** Notes for the audit that a result was refused to its originator. */
    withheld: async (record: PassRecord, by: Releaser): Promise<void> => {
      await note(record, { at: time(), event: "withheld", by })
    },
    appliedPaths: async (passID: string): Promise<readonly string[]> => {
      const state = (await store.read(passID))?.state
      return state && "applied" in state ? state.applied : []
    },
    /** @throws also when the pass's state does not allow it */
    recordApplied: async (passID: string, paths: readonly string[], by: "policy" | "originator"): Promise<void> => {
      const applied = await transition(passID, { type: "applied", paths, by })
      if (applied.kind === "refused") throw new Error(`${applied.error.message}: ${applied.error.cause}`)
    },
  }
}

export type Passes = ReturnType<typeof createPasses>
