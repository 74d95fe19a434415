import { auditEntry, type Happening, refusedEntry } from "./audit-entry.ts"
import type { AuditLog } from "./audit-log.ts"
import type { PassOverRequest } from "./contract.ts"
import { type PassOverError, passOverError } from "./errors.ts"
import type { PassRecord } from "./pass-record.ts"
import { nextState, type PassEvent, SENT } from "./pass-state.ts"
import type { PassStore } from "./pass-store.ts"
import type { ResolvedPolicy } from "./policy-resolution.ts"

const DAY_MS = 86_400_000

/** What may change along with the state. */
export type PassChange = Partial<Pick<PassRecord, "child_session_id" | "output">>

export type Advanced =
  | { readonly kind: "moved"; readonly record: PassRecord }
  /** Nothing is changed: there is no such pass (E023), or this cannot happen to it now (E024). */
  | { readonly kind: "refused"; readonly error: PassOverError }

export type BeginPass = {
  readonly request: PassOverRequest
  readonly policy: ResolvedPolicy
  readonly cacheKey: string | null
  readonly audit: { readonly enabled: boolean; readonly retention_days: number }
}

/** The one way to change a pass: its state moves by the rules, is on disk, and is in the audit, in this order. */
export type Passes = {
  /** @throws when it cannot be stored: such a pass must not begin */
  begin(pass: BeginPass): Promise<PassRecord>
  /** A pass that was never made, for the audit alone. */
  refuse(request: PassOverRequest, error: PassOverError, audit: BeginPass["audit"]): Promise<void>
  /** @throws when it cannot be stored */
  advance(passID: string, event: PassEvent, change?: PassChange): Promise<Advanced>
  /** An attempt failed and another follows: for the audit alone. */
  attemptFailed(passID: string, error: PassOverError): Promise<void>
  /** @returns whether it was announced here and now; false when somebody did before. @throws when it cannot be stored */
  announce(passID: string): Promise<boolean>
}

export type PassesDeps = {
  readonly store: Pick<PassStore, "create" | "read" | "update" | "keepAnswer" | "removeFinished">
  readonly audit: AuditLog
  readonly now: () => Date
}

const unknownPass = (passID: string): PassOverError =>
  passOverError("E023", { message: `There is no pass ${JSON.stringify(passID)}`, cause: "It is not stored here" })

export const createPasses = ({ store, audit, now }: PassesDeps): Passes => {
  const time = (): string => now().toISOString()
  let isPruned = false

  const note = async (record: PassRecord, happening: Happening): Promise<void> => {
    if (record.is_audited) await audit.append(auditEntry(record, happening))
  }
  /** In the background, once a process: what nobody has asked for so long is not waited for either. */
  const pruneOnce = ({ retention_days: days }: BeginPass["audit"]): void => {
    if (isPruned) return
    isPruned = true
    const at = now().getTime()
    void audit.prune(days, at)
    void store.removeFinished(new Date(at - days * DAY_MS))
  }

  return {
    begin: async ({ request, policy, cacheKey, audit: settings }) => {
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
        cache_key: cacheKey,
        is_audited: settings.enabled,
      }
      await store.create(record)
      await note(record, { at, event: "sent" })
      pruneOnce(settings)
      return record
    },

    refuse: async (request, error, { enabled }) => {
      if (enabled) await audit.append(refusedEntry(request, error, time()))
    },

    advance: async (passID, event, change = {}) => {
      const at = time()
      let error: PassOverError | undefined
      const record = await store.update(passID, (before) => {
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
      })
      if (!record) return { kind: "refused", error: unknownPass(passID) }
      if (error) return { kind: "refused", error }
      if (event.type === "returned") await store.keepAnswer(record)
      await note(record, { at, event: event.type })
      return { kind: "moved", record }
    },

    attemptFailed: async (passID, error) => {
      const record = await store.read(passID)
      if (record) await note(record, { at: time(), event: "attempt_failed", error })
    },

    announce: async (passID) => {
      const at = time()
      let isFirst = false
      const record = await store.update(passID, (before) => {
        isFirst = before.announced_at === null
        return isFirst ? { ...before, announced_at: at } : undefined
      })
      if (record && isFirst) await note(record, { at, event: "announced" })
      return isFirst
    },
  }
}
