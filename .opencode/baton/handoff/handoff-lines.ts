import type { HandoffRecord } from "./handoff-record.ts"

type Edge = { readonly from: string; readonly to: string }

const edgesOf = (records: readonly HandoffRecord[]): Edge[] =>
  records.flatMap(({ from, arrivals }) => arrivals.map(({ sessionID }) => ({ from, to: sessionID })))

const reach = (
  start: string,
  edges: readonly Edge[],
  step: (edge: Edge, at: string) => string | undefined,
): Set<string> => {
  const found = new Set([start])
  // A set may grow while it is gone through, and visits what was added; each session once, so that a cycle ends.
  for (const at of found) for (const edge of edges) found.add(step(edge, at) ?? at)
  return found
}

/** The handoffs that a session came from and those that came from it, oldest first: the chain from end to end. */
export const findChain = (records: readonly HandoffRecord[], sessionID: string): HandoffRecord[] => {
  const edges = edgesOf(records)
  const origins = reach(sessionID, edges, ({ from, to }, at) => (to === at ? from : undefined))
  const followers = reach(sessionID, edges, ({ from, to }, at) => (from === at ? to : undefined))
  return records.filter(
    ({ from, arrivals }) => followers.has(from) || arrivals.some((arrival) => origins.has(arrival.sessionID)),
  )
}

/** One handoff in one line: when, from where to where, which task, and the goal. */
export const renderHandoffLine = ({ createdAt, from, arrivals, taskID, goal }: HandoffRecord): string => {
  const to = arrivals.length === 0 ? "(not sent yet)" : arrivals.map(({ sessionID }) => sessionID).join(", ")
  const at = createdAt.slice(0, 16).replace("T", " ")
  return [at, `${from} → ${to}`, ...(taskID === undefined ? [] : [taskID]), goal.replaceAll(/\s+/g, " ")].join("  ")
}
