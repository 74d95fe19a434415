/** @import { HistoryEvent } from "../../observe/history.ts" */

/** Heights in pixels from the top: marks above, intervals in the middle, ends of turns below. */
export const HEIGHT = 30
const BAR = { top: 11, height: 11 }
const WAIT = { top: 8, height: 17 }
const LINE = { top: 16, height: 1.5 }
const TURN = { top: 25, height: 5 }
const MARK_Y = 4
const MARK_SIZE = 3.5
const MIN_WAIT_WIDTH = 3
const MIN_BUSY_WIDTH = 0.6
/** Marks nearer than this are one to the eye. */
const MIN_MARK_DISTANCE = 2

/** @typedef {"busy" | "idle" | "retry" | "permission" | "question" | "turn" | "compaction" | "handoff" | "session"} Layer */
/** @typedef {{ from: number; to: number; width: number }} Frame */

/** @type {readonly Layer[]} */
export const LAYERS = ["idle", "busy", "retry", "permission", "question", "turn", "session", "compaction", "handoff"]

/** @type {Readonly<Partial<Record<HistoryEvent["kind"], { layer: Layer; shape: { top: number; height: number } }>>>} */
const INTERVALS = {
  busy: { layer: "busy", shape: BAR },
  idle: { layer: "idle", shape: LINE },
  started: { layer: "idle", shape: LINE },
  retry: { layer: "retry", shape: BAR },
  permission: { layer: "permission", shape: WAIT },
  question: { layer: "question", shape: WAIT },
}

/** @param {number} value */
const px = (value) => String(Math.round(value * 10) / 10)

/** @param {number} x @param {number} width @param {{ top: number; height: number }} shape */
const box = (x, width, { top, height }) => `M${px(x)} ${top}h${px(width)}v${height}h-${px(width)}z`

/** @type {Readonly<Record<"turn" | "compaction" | "handoff" | "session", (x: number) => string>>} */
const MARKS = {
  turn: (x) => box(x - 0.75, 1.5, TURN),
  compaction: (x) =>
    `M${px(x)} ${MARK_Y - MARK_SIZE}l${MARK_SIZE} ${MARK_SIZE}l-${MARK_SIZE} ${MARK_SIZE}l-${MARK_SIZE} -${MARK_SIZE}z`,
  handoff: (x) =>
    `M${px(x - MARK_SIZE)} ${MARK_Y - MARK_SIZE}l${2 * MARK_SIZE} ${MARK_SIZE}l-${2 * MARK_SIZE} ${MARK_SIZE}z`,
  session: (x) => box(x - 0.5, 1, { top: 0, height: HEIGHT }),
}

/** @param {HistoryEvent["kind"]} kind @returns {kind is keyof typeof MARKS} */
const isMark = (kind) => Object.hasOwn(MARKS, kind)

/**
 * The history as one SVG path a layer: however much there is to draw, the page holds as many elements. Pure.
 *
 * @param {readonly HistoryEvent[]} events oldest first
 * @param {Frame} frame ms since the epoch at the left and the right edge, and the width between them in pixels
 * @returns {Record<Layer, string>}
 */
export const drawTimeline = (events, { from, to, width }) => {
  /** @type {Record<Layer, string>} */
  const paths = {
    idle: "",
    busy: "",
    retry: "",
    permission: "",
    question: "",
    turn: "",
    session: "",
    compaction: "",
    handoff: "",
  }
  const x = (/** @type {number} */ at) => ((at - from) / (to - from)) * width
  const intervals = events.filter(({ kind }) => !isMark(kind))
  intervals.forEach((event, index) => {
    const drawnAs = INTERVALS[event.kind]
    const end = intervals[index + 1]?.at ?? to
    if (!drawnAs || end < from || event.at > to) return
    const left = Math.max(0, x(event.at))
    // A wait that is short must be seen, and work in many short bits is work; idle times of no width are not.
    const least = drawnAs.shape === WAIT ? MIN_WAIT_WIDTH : drawnAs.shape === BAR ? MIN_BUSY_WIDTH : 0
    const length = Math.max(Math.min(width, x(end)) - left, least)
    if (length >= 0.5) paths[drawnAs.layer] += box(Math.min(left, width - length), length, drawnAs.shape)
  })
  /** @type {Partial<Record<Layer, number>>} */
  const lastAt = {}
  for (const { kind, at } of events) {
    if (!isMark(kind) || at < from || at > to) continue
    const place = x(at)
    if (place - (lastAt[kind] ?? Number.NEGATIVE_INFINITY) < MIN_MARK_DISTANCE) continue
    lastAt[kind] = place
    paths[kind] += MARKS[kind](place)
  }
  return paths
}

const MINUTE = 60_000
const LONGEST = { minutes: 360, step: 60 }
/** The lengths of a timeline, and how far apart the lines of its axis are, in minutes. */
const SPANS = [
  { minutes: 2, step: 1 },
  { minutes: 5, step: 1 },
  { minutes: 15, step: 5 },
  { minutes: 60, step: 15 },
  LONGEST,
]

/** The shortest length that shows all that was seen. @param {number} seenMs */
export const fittingSpan = (seenMs) => SPANS.find(({ minutes }) => minutes * MINUTE >= seenMs) ?? LONGEST

/** How many minutes ago the lines of an axis are, oldest first. @param {{ minutes: number; step: number }} span */
export const axisMinutes = ({ minutes, step }) =>
  Array.from({ length: Math.floor(minutes / step) + 1 }, (_, index) => index * step).reverse()

/** How often each thing is in the frame, in words. @param {readonly HistoryEvent[]} events @param {number} from */
export const summariseTimeline = (events, from) => {
  const shown = events.filter(({ at }) => at >= from)
  const count = (/** @type {HistoryEvent["kind"][]} */ ...kinds) =>
    shown.reduce((sum, event) => sum + (kinds.includes(event.kind) ? (event.count ?? 1) : 0), 0)
  return [
    `${count("turn")} turns ended`,
    `${count("permission", "question")} waits`,
    `${count("compaction")} compactions`,
    `${count("handoff")} handoffs`,
  ].join(", ")
}
