import type { Log } from "../host/log.ts"
import { collectUserText } from "../host/messages.ts"
import { HANDOFFS_FOLDER } from "../host/project.ts"
import type { Parsed, Zod } from "../host/schema.ts"
import { messagePages, type Sessions, type StoredMessage } from "../host/sessions.ts"
import { createJsonStore, type StateFolder } from "../host/state.ts"
import { userWordsSchema } from "../task/user-words.ts"
import { findMarker } from "./draft.ts"

const PREFIX = "handoff-"

const handoffRecordSchema = (z: Zod) =>
  z.object({
    version: z.literal(1),
    id: z.string(),
    /** ISO 8601, UTC. */
    createdAt: z.string(),
    /** The session that handed over. */
    from: z.string(),
    goal: z.string(),
    /** The draft as it was made, before the user's edits. */
    draft: z.string(),
    files: z.array(z.string()).readonly(),
    leftOut: z.array(z.object({ path: z.string(), reason: z.string() })).readonly(),
    taskID: z.string().optional(),
    /** The user's words up to this handoff, for the next one of the chain. */
    said: z.object({ words: z.array(userWordsSchema(z)).readonly(), leftOut: z.number() }),
    /** The new session that was started with the draft, without the user sending it. */
    started: z.string().optional(),
    /** Sessions in which the draft arrived; the first of them continues the work. */
    arrivals: z.array(z.object({ sessionID: z.string(), at: z.string() })).readonly(),
  })

/** One handoff, from the draft on; one file each under `.opencode/state/handoffs/`. */
export type HandoffRecord = Parsed<typeof handoffRecordSchema>

export type HandoffRecords = ReturnType<typeof createHandoffRecords>

/** The handoffs of a project. No call throws; read and write errors are logged. */
export const createHandoffRecords = (deps: { state: Pick<StateFolder, "path" | "write">; log: Log }) => {
  const store = createJsonStore({ ...deps, folder: HANDOFFS_FOLDER, schema: handoffRecordSchema })
  return {
    /** Oldest first. */
    list: async (): Promise<HandoffRecord[]> => {
      const keys = (await store.keys()).filter((key) => key.startsWith(PREFIX))
      const records = await Promise.all(keys.map(store.read))
      return records.filter((record) => record !== undefined)
    },
    /** @returns whether it is on disk */
    write: (record: HandoffRecord): Promise<boolean> => store.write(`${PREFIX}${record.id}`, record),
  }
}

/** Makes an id that sorts by time. @param random lower-case letters and digits */
export const handoffID = (at: Date, random: string): string => `${at.toISOString().replaceAll(/[^0-9]/g, "")}-${random}`

type Edge = { readonly from: string; readonly to: string }

const edgesOf = (records: readonly HandoffRecord[]): Edge[] =>
  records.flatMap(({ from, arrivals }) => arrivals.map(({ sessionID }) => ({ from, to: sessionID })))

const reach = (
  start: string,
  edges: readonly Edge[],
  step: (edge: Edge, at: string) => string | undefined,
): Set<string> => {
  const found = new Set([start])
  // A set visits elements added during the iteration, each once, so that a cycle ends.
  for (const at of found) for (const edge of edges) found.add(step(edge, at) ?? at)
  return found
}

/** Returns the whole chain of a session, oldest first: the handoffs it came from and those that came from it. */
export const findChain = (records: readonly HandoffRecord[], sessionID: string): HandoffRecord[] => {
  const edges = edgesOf(records)
  const origins = reach(sessionID, edges, ({ from, to }, at) => (to === at ? from : undefined))
  const followers = reach(sessionID, edges, ({ from, to }, at) => (from === at ? to : undefined))
  return records.filter(
    ({ from, arrivals }) => followers.has(from) || arrivals.some((arrival) => origins.has(arrival.sessionID)),
  )
}

/** Longer than any real chain; it ends a cycle in damaged data. */
const MAX_STEPS = 64

export type ChainDeps = {
  sessions: Pick<Sessions, "info" | "messages">
  records: () => Promise<readonly HandoffRecord[]>
}

/**
 * Finds the sessions that one came from, by handoff or as a subagent, and their ancestors. Stops at the session wanted.
 *
 * If a record is lost, the marker in the session's first message replaces it; a draft quoted later does not count.
 */
const ancestorsOf = async (
  deps: ChainDeps,
  sessionID: string,
  handoffs: readonly HandoffRecord[],
  wanted: string,
): Promise<Set<string>> => {
  const found = new Set<string>()
  const open = [sessionID]
  for (let steps = 0; open.length > 0 && steps < MAX_STEPS && !found.has(wanted); steps++) {
    const current = open.shift() ?? ""
    const info = await deps.sessions.info(current)
    const parent = info.kind === "ok" ? info.value.parentID : undefined
    const recorded = handoffs
      .filter(({ arrivals }) => arrivals.some((arrival) => arrival.sessionID === current))
      .map(({ from }) => from)
    const marked = recorded.length > 0 ? undefined : await readMarker(deps, current)
    for (const origin of [parent, marked, ...recorded]) {
      if (origin === undefined || found.has(origin)) continue
      found.add(origin)
      open.push(origin)
    }
  }
  return found
}

const PAGE_MESSAGES = 100
/** A marker further back is not found. */
const MAX_PAGES = 20

const readMarker = async ({ sessions }: ChainDeps, sessionID: string): Promise<string | undefined> => {
  let pages = 0
  let first: StoredMessage | undefined
  for await (const answer of messagePages(sessions, sessionID, {
    size: PAGE_MESSAGES,
    shouldStop: () => pages++ >= MAX_PAGES,
  })) {
    if (answer.kind === "failed") return undefined
    const { messages, isOldest } = answer.value
    first = messages.find(({ info }) => info.role === "user") ?? first
    if (isOldest) return first && findMarker(collectUserText(first.parts))?.from
  }
  return undefined
}

/** Related over handoffs and subagents: one session came from the other, or both from a third. */
export const isRelated = async (deps: ChainDeps, sessionID: string, other: string): Promise<boolean> => {
  if (sessionID === other) return true
  const handoffs = await deps.records()
  const own = (await ancestorsOf(deps, sessionID, handoffs, other)).add(sessionID)
  if (own.has(other)) return true
  const others = await ancestorsOf(deps, other, handoffs, sessionID)
  return [other, ...others].some((each) => own.has(each))
}
