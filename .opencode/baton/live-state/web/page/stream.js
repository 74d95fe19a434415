/** @import { AgentUpdate, BoardUpdate } from "../board.ts" */
/** @import { HistoryPoint } from "../board.ts" */

/** Three of the observer's beats; a connection may be lost without a word. */
const SILENCE_MS = 16_000
const REOPEN_MS = 2_000
const MAX_POINTS = 500

/** @typedef {{ agent: AgentUpdate; points: HistoryPoint[] }} Known */

/**
 * What the page has, with an update taken in. Pure but for the map.
 * @param {Map<string, Known>} known
 * @param {Pick<BoardUpdate, "agents" | "keys">} update
 * @returns {Set<string>} the keys of what is different now
 */
export const takeUpdate = (known, { agents, keys }) => {
  const changed = new Set(agents.map(({ key }) => key))
  for (const agent of agents) {
    const before = agent.isWhole ? [] : (known.get(agent.key)?.points ?? [])
    known.set(agent.key, { agent, points: [...before, ...agent.points].slice(-MAX_POINTS) })
  }
  const present = new Set(keys)
  for (const key of known.keys()) {
    if (present.has(key)) continue
    known.delete(key)
    changed.add(key)
  }
  return changed
}

/**
 * Keeps a stream of events open for as long as the page is. The browser itself asks for what it missed (Last-Event-ID);
 * where it gives up, this opens another.
 *
 * @param {{
 *   onUpdate: (update: BoardUpdate) => void
 *   onConnection: (state: "live" | "lost") => void
 *   onClock: (observersNow: number) => void
 * }} handlers
 */
export const openStream = ({ onUpdate, onConnection, onClock }) => {
  /** @type {EventSource} */
  let source
  let heardAt = performance.now()

  const heard = () => {
    heardAt = performance.now()
    onConnection("live")
  }
  const readClock = (/** @type {MessageEvent<string>} */ event) => {
    const value = JSON.parse(event.data)
    onClock(typeof value === "number" ? value : value.now)
    heard()
  }

  const open = () => {
    source = new EventSource("/events")
    source.addEventListener("hello", readClock)
    source.addEventListener("beat", readClock)
    source.addEventListener("agents", (event) => {
      onUpdate(JSON.parse(event.data))
      heard()
    })
    source.addEventListener("error", () => {
      onConnection("lost")
      if (source.readyState === EventSource.CLOSED) setTimeout(open, REOPEN_MS)
    })
  }

  setInterval(() => {
    if (performance.now() - heardAt < SILENCE_MS || source.readyState === EventSource.CLOSED) return
    onConnection("lost")
    source.close()
    heardAt = performance.now()
    open()
  }, REOPEN_MS)
  open()
}
