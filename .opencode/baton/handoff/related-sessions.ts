import type { Sessions } from "../host/sessions.ts"
import { collectUserText } from "../task/parse.ts"
import { findMarker } from "./draft.ts"
import type { HandoffRecord } from "./handoff-record.ts"

/** Longer than any honest chain; a cycle in damaged data ends here. */
const MAX_STEPS = 64

export type ChainDeps = {
  sessions: Pick<Sessions, "info" | "messages">
  records: () => Promise<readonly HandoffRecord[]>
}

/**
 * The sessions that one came from: whoever handed over to it or started it as a subagent, and so on back.
 *
 * The search ends at the session that is wanted. A record that is lost is made up for by the marker, which stands in the session's first message.
 */
const findOrigins = async (
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
    const parent = info.kind === "answer" ? info.value.parentID : undefined
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

const NEWEST_MESSAGES = 100

const readMarker = async ({ sessions }: ChainDeps, sessionID: string): Promise<string | undefined> => {
  const answer = await sessions.messages(sessionID, NEWEST_MESSAGES)
  if (answer.kind === "failed") return undefined
  const texts = answer.value.messages
    .filter(({ info }) => info.role === "user")
    .map(({ parts }) => collectUserText(parts))
  return texts.map(findMarker).find((marker) => marker !== undefined)?.from
}

/** Whether two sessions belong together: one came from the other, or both from a third, over handoffs and subagents. */
export const isInChain = async (deps: ChainDeps, sessionID: string, other: string): Promise<boolean> => {
  if (sessionID === other) return true
  const handoffs = await deps.records()
  const own = (await findOrigins(deps, sessionID, handoffs, other)).add(sessionID)
  if (own.has(other)) return true
  const others = await findOrigins(deps, other, handoffs, sessionID)
  return [other, ...others].some((each) => own.has(each))
}
