import type { Observed } from "./events.ts"
import {
  type AgentState,
  diffStates,
  isObject,
  type LiveState,
  NEW_AGENT,
  type Observation,
  type Place,
  type Retry,
  reduce,
  type StreamLine,
  type Waiting,
} from "./protocol.ts"

type Identity = Pick<LiveState, "c2c_session_id" | "c2c_alias" | "opencode_pid" | "plugin_started_at">

const WHOLE_FIELDS: ReadonlySet<string> = new Set(["tui_focus", "last_step", "task", "retry", "place"])

type Asked = Extract<Observation, { kind: "permission-asked" | "question-asked" }>
type Retrying = Extract<Observation, { kind: "retrying" }>
type Of<Seen> = { readonly sessionID: string; readonly at: string; readonly seen: Seen }

/** Holds the sessions of a process up: their requests, in order, and providers that are asked again. */
type Held = { readonly asked: readonly Of<Asked>[]; readonly retries: readonly Of<Retrying>[] }

const NOTHING_HELD: Held = { asked: [], retries: [] }

/** More than a person leaves waiting. */
const MAX_ASKED = 100

const idOf = (seen: Asked): string => (seen.kind === "permission-asked" ? seen.details.id : seen.question.id)

const without = <T extends Of<unknown>>(list: readonly T[], isOver: (each: T) => boolean): readonly T[] =>
  list.some(isOver) ? list.filter((each) => !isOver(each)) : list

/** Applies what was seen of a session, a root's or a subagent's. */
const observeHeld = (held: Held, sessionID: string, at: string, seen: Observation): Held => {
  const isOfSession = (each: Of<unknown>) => each.sessionID === sessionID
  const retries = without(held.retries, isOfSession)
  switch (seen.kind) {
    case "permission-asked":
    case "question-asked": {
      if (held.asked.some((each) => idOf(each.seen) === idOf(seen))) return held
      return { ...held, asked: [...held.asked, { sessionID, at, seen }].slice(-MAX_ASKED) }
    }
    case "permission-replied":
    case "question-ended":
      return { ...held, asked: without(held.asked, (each) => idOf(each.seen) === seen.id) }
    case "retrying": {
      const since = held.retries.find(isOfSession)?.at ?? at
      return { ...held, retries: [...retries, { sessionID, at: since, seen }] }
    }
    case "busy":
    case "message-finished":
      return { ...held, retries }
    case "idle":
    case "ended":
      return { asked: without(held.asked, isOfSession), retries }
    default:
      return held
  }
}

type Whose = (sessionID: string) => {
  readonly top: string
  readonly rootTitle: string | null
  readonly subagent: string | null
  /** It is the published session, or below it. */
  readonly isShown: boolean
}

const toWaiting = ({ asked }: Held, whose: Whose): readonly Waiting[] => {
  const all = asked.map(({ sessionID, at, seen }) => {
    const { top, rootTitle, subagent, isShown } = whose(sessionID)
    const about = { session_id: sessionID, root_session_id: top, root_title: rootTitle, subagent, since: at }
    const waiting: Waiting =
      seen.kind === "permission-asked"
        ? { kind: "permission", ...seen.details, subject: seen.subject, ...about }
        : { kind: "question", ...seen.question, ...about }
    return { isShown, waiting }
  })
  return [...all.filter(({ isShown }) => isShown), ...all.filter(({ isShown }) => !isShown)].map(
    ({ waiting }) => waiting,
  )
}

const toRetry = ({ retries }: Held, whose: Whose): Retry | null => {
  for (const { sessionID, at, seen } of retries) {
    const { isShown, subagent } = whose(sessionID)
    if (isShown) return { message: seen.message, attempt: seen.attempt, next_at: seen.nextAt, since: at, subagent }
  }
  return null
}

/** A long-running server may see very many sessions. */
const MAX_KNOWN_SESSIONS = 5_000

/**
 * Holds the published state: that of one root session, the first that is seen, until the user writes to another root session of
 * the process. Each keeps its own counters (docs/adr/0008). Child sessions never change it, but for the extensions: what waits in
 * any session of the process, and a provider that is asked again.
 *
 * @param place for the extensions
 */
export const createPublisher = ({
  identity,
  strict,
  now,
  place = null,
}: {
  identity: Identity
  strict: boolean
  now: () => Date
  place?: Place | null
}) => {
  const agents = new Map<string, AgentState>()
  const parents = new Map<string, string | undefined>()
  let rootID: string | undefined
  let held: Held = NOTHING_HELD
  let published: LiveState | undefined
  let heartbeatAt = now().toISOString()

  /** For a session created before the plugin was loaded. */
  const registerSession = (sessionID: string, parentID: string | undefined): void => {
    parents.set(sessionID, parentID)
    if (parents.size <= MAX_KNOWN_SESSIONS) return
    for (const oldest of parents.keys()) {
      if (oldest === rootID) continue
      agents.delete(oldest)
      parents.delete(oldest)
      return
    }
  }

  /** A deleted root is shown until another one replaces it. */
  const setRoot = (sessionID: string): void => {
    if (rootID !== undefined && rootID !== sessionID && !parents.has(rootID)) agents.delete(rootID)
    rootID = sessionID
  }

  const kindOf = (sessionID: string): "root" | "child" | "unknown" => {
    if (!parents.has(sessionID)) return "unknown"
    return parents.get(sessionID) === undefined ? "root" : "child"
  }

  /** The session above all parents. */
  const topOf = (sessionID: string): string => {
    const seen = new Set<string>()
    let top = sessionID
    for (let parent = parents.get(top); parent !== undefined && !seen.has(parent); parent = parents.get(top)) {
      seen.add(parent)
      top = parent
    }
    return top
  }

  const whose = (sessionID: string) => {
    const top = topOf(sessionID)
    const title = agents.get(sessionID)?.title ?? null
    const rootTitle = agents.get(top)?.title ?? null
    return { top, rootTitle, subagent: top === sessionID ? null : (title ?? sessionID), isShown: top === rootID }
  }

  const render = (at: string): LiveState => {
    const agent = (rootID === undefined ? undefined : agents.get(rootID)) ?? NEW_AGENT
    const { task, title, turns, permissions, compactions, handoffs, contextTokens, statusSince } = agent
    return {
      ...identity,
      root_opencode_session_id: rootID ?? null,
      state_last_updated_at: at,
      agent: agent.agent,
      tui_focus: agent.focus,
      prompt: { has_text: agent.hasText },
      pendingQuestion: agent.questions[0] ?? null,
      ...(strict
        ? {}
        : {
            extensions: {
              task,
              title,
              turns,
              permission_subject: permissions[0]?.subject || null,
              waiting: toWaiting(held, whose),
              retry: toRetry(held, whose),
              place,
              compactions,
              handoffs,
              context_tokens: contextTokens,
              status_since: statusSince,
              heartbeat_at: heartbeatAt,
            },
          }),
    }
  }

  const snapshotAt = (at: string): StreamLine => {
    heartbeatAt = at
    published = render(at)
    return { event: "state.snapshot", ts: at, state: published }
  }

  /** A pending question is published and cleared by a snapshot, as the protocol says; other changes by a patch if possible. */
  const lineAt = (at: string): StreamLine | undefined => {
    if (!published) return snapshotAt(at)
    const before = published
    const same = render(before.state_last_updated_at)
    if (!isObject(before) || !isObject(same) || diffStates(before, same).kind === "none") return undefined
    heartbeatAt = at
    const after = render(at)
    if (before.pendingQuestion?.id !== after.pendingQuestion?.id) return snapshotAt(at)
    const difference = isObject(after) ? diffStates(before, after, WHOLE_FIELDS) : { kind: "replaced" as const }
    if (difference.kind !== "patch") return snapshotAt(at)
    published = after
    return { event: "state.patch", ts: at, patch: difference.patch }
  }

  const update = (sessionID: string, at: string, seen: Observation): void => {
    agents.set(sessionID, reduce(agents.get(sessionID) ?? NEW_AGENT, sessionID, at, seen))
  }

  const apply = (observed: Observed, at: string): void => {
    const { sessionID } = observed
    switch (observed.kind) {
      case "session-created":
        registerSession(sessionID, observed.parentID)
        if (observed.parentID !== undefined) return
        update(sessionID, at, { kind: "created" })
        rootID ??= sessionID
        return
      case "user-message": {
        if (kindOf(sessionID) !== "root") return
        const agent = agents.get(sessionID) ?? NEW_AGENT
        // Only a new message moves the user's attention, not a change of an older one.
        if (observed.messageID <= agent.spokenMessageID) return
        agents.set(sessionID, { ...agent, spokenMessageID: observed.messageID })
        setRoot(sessionID)
        return
      }
      case "session": {
        const [kind, { seen }] = [kindOf(sessionID), observed]
        if (kind === "unknown") return
        held = observeHeld(held, sessionID, at, seen)
        // Of a child only the title is kept, which tells whose request waits.
        if (kind === "child" && seen.kind !== "titled") return
        if (kind === "root" && seen.kind === "idle") rootID ??= sessionID
        update(sessionID, at, seen)
        return
      }
      case "deleted": {
        held = observeHeld(held, sessionID, at, { kind: "ended" })
        if (sessionID === rootID) update(sessionID, at, { kind: "ended" })
        else agents.delete(sessionID)
        parents.delete(sessionID)
        return
      }
    }
  }

  return {
    registerSession,
    kindOf,
    topOf,
    /** Permissions and questions of the process that wait; also in strict mode. */
    waiting: () => toWaiting(held, whose),
    /**
     * @param observedAt time of the observation; now when absent
     * @returns the line to publish; undefined when nothing published changes
     */
    receive: (observed: Observed, observedAt = now()): StreamLine | undefined => {
      const at = observedAt.toISOString()
      apply(observed, at)
      // An event that was held back may be older than what was published; the stream's time never goes back.
      const before = published?.state_last_updated_at
      return lineAt(before !== undefined && before > at ? before : at)
    },
    /** The whole state after the newest line; undefined before the first. */
    current: (): LiveState | undefined => published,
    /** The session that is published; undefined if there is none or it is deleted. */
    root: () =>
      rootID !== undefined && parents.has(rootID)
        ? { sessionID: rootID, isIdle: agents.get(rootID)?.agent.is_idle === true }
        : undefined,
    /** The whole state, for a writer that has just started or missed lines. */
    snapshot: (): StreamLine => snapshotAt(now().toISOString()),
    /** Ends the agent: it does nothing and waits for no answer any more. */
    end: (): StreamLine | undefined => {
      const at = now().toISOString()
      held = NOTHING_HELD
      if (rootID !== undefined) update(rootID, at, { kind: "ended" })
      return lineAt(at)
    },
    /** The line sent when there is no other change; undefined in strict mode. */
    heartbeat: (): StreamLine | undefined => {
      if (strict) return undefined
      heartbeatAt = now().toISOString()
      return lineAt(heartbeatAt)
    },
  }
}

export type Publisher = ReturnType<typeof createPublisher>
