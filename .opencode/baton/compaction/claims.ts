import { withDeadline } from "../host/async.ts"
import { describeError, type Log } from "../host/log.ts"
import { WRITING_TOOLS } from "../host/messages.ts"
import { quoted } from "../host/quoted.ts"
import type { Settings } from "../host/settings.ts"
import type { CallOptions, ClaimLedger, ClaimOutcome, Ledger, RunEnd } from "../ledger/ledger.ts"
import type { SessionTask, TaskRegistry } from "../task/registry.ts"

export type ClaimsMode = Settings["claims"]

/** A lease lasts five times as long. */
export const RENEW_EVERY_MS = 60_000
const CALL_DEADLINE_MS = 1_200
/** The hook of a tool has 3 s. */
const GATE_DEADLINE_MS = 2_500

/** More sessions than one server works on at once: the one that claimed first gives its claim up. */
const MAX_CLAIMS = 500

/** A session that hands its task over is not at work on it. */
const HANDOFF_TOOL = "handoff_session"

type ClaimState =
  | ClaimOutcome
  /** The claim was released from outside: the user's next message claims again. */
  | { readonly kind: "lost" }
  /** The claim ended with its task, which is opened again: the next tool claims again. */
  | { readonly kind: "reopened" }

const NOT_CLAIMED: ClaimState = { kind: "lost" }

type Entry = {
  readonly binding: SessionTask
  state: Promise<ClaimState>
  /** The result of the newest step that has ended. */
  known?: ClaimState
  /** The user has spoken since the last tool: the next one claims again a task that the session did not get or lost. */
  isDue?: boolean
}

type ClaimsDeps = {
  ledger: ClaimLedger & Pick<Ledger, "readTask">
  tasks: Pick<TaskRegistry, "owner">
  /** Reads the setting. */
  mode: () => Promise<ClaimsMode>
  /** True for a session of this project that has the task and is not at work. */
  isIdleOn: (taskID: string, sessionID: string) => Promise<boolean>
  /** The ends of sessions' runs, as far as they were seen. */
  endsOf: (bindings: readonly Pick<SessionTask, "sessionID" | "taskID">[]) => RunEnd[]
  /** The sessions have no person at them: `opencode run`. */
  isUnattended: boolean
  /** Tells the user and the model that another has the task. */
  tell: (sessionID: string, taskID: string, summary: string) => Promise<void>
  log: Log
}

const heldText = (taskID: string, summary: string): string =>
  [
    `Task ${taskID} is claimed by ${quoted(summary)}, so this session may not change its files now (setting "claims": "exclusive").`,
    `Tell the user. To go on: wait until that session ends; or let the user run \`prog release ${taskID}\`, give another task, or set "claims": "shared" in .opencode/baton.json.`,
  ].join(" ")

const lostText = (taskID: string): string =>
  `The claim of this session on task ${taskID} was released (by a handoff or \`prog release\`, or another took the task when it was opened again), so it may not change files (setting "claims": "exclusive"). Tell the user: the next message here claims the task again if it is free.`

const reasonOf = (state: ClaimState): string =>
  "summary" in state ? state.summary : "reason" in state ? state.reason : ""

export type TaskClaims = ReturnType<typeof createTaskClaims>

/** The claims that this process's sessions have on their tasks. */
export const createTaskClaims = (deps: ClaimsDeps) => {
  const { ledger, tasks, mode, isIdleOn, endsOf, isUnattended, tell, log } = deps
  const entries = new Map<string, Entry>()
  let timer: NodeJS.Timeout | undefined

  /** Queues a step behind the session's running one. */
  const next = (entry: Entry, step: (before: ClaimState) => Promise<ClaimState>): Promise<ClaimState> => {
    entry.state = entry.state.then(async (before) => {
      entry.known = await step(before)
      return entry.known
    })
    return entry.state
  }

  /** Logs the outcome, unless it is the same as before. */
  const report = async (
    { sessionID, taskID }: SessionTask,
    outcome: ClaimOutcome,
    before: ClaimState,
  ): Promise<void> => {
    if (outcome.kind === before.kind && reasonOf(outcome) === reasonOf(before)) return
    if (outcome.kind === "claimed") log.info("the task is claimed", { sessionID, taskID })
    else if (outcome.kind === "held") {
      log.info("another has claimed the task", { sessionID, taskID, by: outcome.summary })
      await tell(sessionID, taskID, outcome.summary)
    } else log.warn("the task is not claimed", { sessionID, taskID, reason: outcome.reason })
  }

  const ask = ({ taskID, sessionID }: SessionTask, options: CallOptions): Promise<ClaimOutcome> =>
    ledger.claimTask(taskID, sessionID, { ...options, isPerson: !isUnattended })

  /** Ends the claim of an idle session of this project: the user speaks to another now. */
  const takeFromIdle = async ({ sessionID, taskID }: SessionTask, options: CallOptions): Promise<boolean> => {
    const read = await ledger.readTask(taskID, { ...options, withClaim: true })
    const holder = read.kind === "found" ? read.task.claim?.session : undefined
    if (holder === undefined || holder === sessionID || !(await isIdleOn(taskID, holder))) return false
    log.info("an idle session gives its claim to the one at work", { sessionID, taskID, from: holder })
    await ledger.releaseClaims([holder])
    return true
  }

  /** Claims a task that is free, and says so where it is not. */
  const claimFree = async (
    binding: SessionTask,
    before: ClaimState,
    options: CallOptions = {},
    found?: ClaimOutcome,
  ): Promise<ClaimState> => {
    const outcome = found ?? (await ask(binding, options))
    await report(binding, outcome, before)
    // A ledger that does not answer frees no task.
    return outcome.kind === "unavailable" && before.kind === "held" ? before : outcome
  }

  /** The same for a session at work, which also takes the task from an idle one. */
  const claim = async (binding: SessionTask, before: ClaimState, options: CallOptions = {}): Promise<ClaimState> => {
    const outcome = await ask(binding, options)
    const isTaken = outcome.kind === "held" && (await takeFromIdle(binding, options))
    return claimFree(binding, before, options, isTaken ? undefined : outcome)
  }

  const end = ({ sessionID, taskID }: SessionTask, kind: "lost" | "reopened"): ClaimState => {
    const why = kind === "lost" ? "was released from outside" : "ended with its task, which is opened again"
    log.info(`the claim ${why}`, { sessionID, taskID })
    return { kind }
  }

  /** Extends the claims of all sessions, and claims again for those that did not get their task. */
  const renew = async (): Promise<void> => {
    const own: Entry[] = []
    for (const entry of entries.values()) {
      const { kind } = await entry.state
      if (kind === "claimed") own.push(entry)
      if (kind === "held" || kind === "unavailable") void next(entry, (before) => claimFree(entry.binding, before))
    }
    const renewed = own.length === 0 ? undefined : await ledger.renewClaims(own.map(({ binding }) => binding.sessionID))
    if (!renewed) return
    for (const entry of own) {
      const kind = renewed.get(entry.binding.sessionID) ?? "lost"
      if (kind !== "claimed") void next(entry, async () => end(entry.binding, kind))
    }
  }

  const begin = (binding: SessionTask): Entry => {
    const known = entries.get(binding.sessionID)
    if (known?.binding.taskID === binding.taskID) return known
    const freed = async (): Promise<ClaimState> => {
      await known?.state
      await ledger.endRuns(endsOf([known?.binding ?? binding]))
      return NOT_CLAIMED
    }
    const [oldest] = entries.keys()
    if (oldest !== undefined && entries.size >= MAX_CLAIMS) void release([oldest])
    const entry: Entry = { binding, state: known ? freed() : Promise.resolve(NOT_CLAIMED) }
    void next(entry, (before) => claim(binding, before))
    entries.set(binding.sessionID, entry)
    timer ??= setInterval(
      () =>
        void renew().catch((error: unknown) => log.error("claims are not renewed", { error: describeError(error) })),
      RENEW_EVERY_MS,
    ).unref()
    return entry
  }

  /** Asks the ledger: another may have released or taken the claim since. */
  const verify = (entry: Entry, isDue = false): Promise<ClaimState> =>
    next(entry, async (before) => {
      const { binding } = entry
      const options = { deadlineMs: CALL_DEADLINE_MS }
      if (!isDue && (before.kind === "lost" || before.kind === "refused")) return before
      if (before.kind !== "claimed") return claim(binding, before, options)
      const renewed = await ledger.renewClaims([binding.sessionID], options)
      const kind = renewed ? (renewed.get(binding.sessionID) ?? "lost") : "claimed"
      if (kind === "claimed") return before
      const ended = end(binding, kind)
      return isDue ? claim(binding, ended, options) : ended
    })

  /** Claims a task that was opened again, and when it is due, one that the session does not have. */
  const claimAgain = (entry: Entry, isDue: boolean): Promise<ClaimState> =>
    next(entry, async (before) =>
      before.kind === "reopened" || (isDue && before.kind !== "claimed")
        ? claim(entry.binding, before, { deadlineMs: CALL_DEADLINE_MS })
        : before,
    )

  const release = async (sessionIDs: readonly string[]): Promise<void> => {
    const left = sessionIDs.flatMap((sessionID) => entries.get(sessionID) ?? [])
    for (const sessionID of sessionIDs) entries.delete(sessionID)
    await Promise.all(left.map(({ state }) => state))
    if (left.length > 0) await ledger.endRuns(endsOf(left.map(({ binding }) => binding)))
  }

  return {
    /** Claims the task of an unattended session with its first message: its run begins there. */
    runBegins: async (binding: SessionTask): Promise<void> => {
      if ((await mode()) !== "off") begin(binding)
    },
    /** Ends the run of an unattended session with its turn, before it returns. */
    runEnds: (binding: SessionTask): void => {
      const entry = entries.get(binding.sessionID)
      entries.delete(binding.sessionID)
      const isBegun = entry !== undefined && entry.known === undefined
      for (const end of endsOf([binding])) ledger.endRunNow(end, isBegun)
    },
    /**
     * Claims the task in the background, at a session's first tool.
     *
     * @returns the reason to refuse a tool that changes files
     */
    toolStarting: async (binding: SessionTask, tool: string): Promise<string | undefined> => {
      const setting = await mode()
      if (setting === "off" || tool === HANDOFF_TOOL) return undefined
      const owner = await tasks.owner(binding)
      if (!owner) return undefined
      const entry = begin(owner)
      const { isDue = false } = entry
      entry.isDue = false
      if (setting !== "exclusive" || !WRITING_TOOLS.has(tool)) {
        void claimAgain(entry, isDue)
        return undefined
      }
      const { taskID, sessionID } = owner
      // An earlier call may wait for a locked database: what was known before holds.
      void verify(entry, isDue)
      const verified = await withDeadline(claimAgain(entry, false), GATE_DEADLINE_MS)
      const state = verified.kind === "done" ? verified.value : entry.known
      if (state?.kind !== "held" && state?.kind !== "lost") return undefined
      log.info("a tool is refused: the task is another's", { sessionID, taskID, tool })
      return state.kind === "held" ? heldText(taskID, state.summary) : lostText(taskID)
    },
    /** The user goes on with a session: a task that it did not get or lost may be claimed again. */
    userArrived: async (sessionID: string): Promise<void> => {
      const entry = entries.get(sessionID)
      if (!entry) return
      entry.isDue = true
      if ((await entry.state).kind === "claimed") await verify(entry)
    },
    /** Releases the claim of a deleted session. */
    forget: (sessionID: string): Promise<void> => release([sessionID]),
    /** Releases all of them. */
    stop: async (): Promise<void> => {
      clearInterval(timer)
      timer = undefined
      await release([...entries.keys()])
    },
  }
}
