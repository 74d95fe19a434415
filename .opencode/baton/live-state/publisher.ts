import type { Observed } from "./events.ts"
import {
  type AgentState,
  diffStates,
  isObject,
  type LiveState,
  NEW_AGENT,
  reduce,
  type StreamLine,
} from "./protocol.ts"

type Identity = Pick<LiveState, "c2c_session_id" | "c2c_alias" | "opencode_pid" | "plugin_started_at">

const WHOLE_FIELDS: ReadonlySet<string> = new Set(["tui_focus", "last_step", "task"])

/** A long-running server may see very many sessions. */
const MAX_KNOWN_SESSIONS = 5_000

/**
 * Holds the published state: that of one root session, the first that is seen, until the user writes to another root session of
 * the process. Each keeps its own counters (docs/adr/0008). Child sessions never change it.
 */
export const createPublisher = ({
  identity,
  strict,
  now,
}: {
  identity: Identity
  strict: boolean
  now: () => Date
}) => {
  const agents = new Map<string, AgentState>()
  const parents = new Map<string, string | undefined>()
  let rootID: string | undefined
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

  const update = (sessionID: string, at: string, seen: Parameters<typeof reduce>[3]): void => {
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
        if (kindOf(sessionID) !== "root") return
        const { seen } = observed
        if (seen.kind === "idle") rootID ??= sessionID
        update(sessionID, at, seen)
        return
      }
      case "deleted": {
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
