/** @import { AgentUpdate } from "../board.ts" */
/** @import { HistoryPoint } from "../board.ts" */

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** How long: "5 s", "12 min", "3 h", "2 d". @param {number} ms */
export const duration = (ms) => {
  if (ms < MINUTE) return `${Math.max(0, Math.floor(ms / SECOND))} s`
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`
  return ms < 2 * DAY ? `${Math.floor(ms / HOUR)} h` : `${Math.floor(ms / DAY)} d`
}

/** @type {Readonly<Record<AgentUpdate["doing"], { mark: string; word: string }>>} */
export const DOING = {
  permission: { mark: "!", word: "asks permission" },
  question: { mark: "?", word: "asks" },
  busy: { mark: "●", word: "busy" },
  idle: { mark: "○", word: "idle" },
  started: { mark: "◌", word: "started" },
  gone: { mark: "×", word: "gone" },
}

/** @param {AgentUpdate} agent */
export const isWaiting = ({ doing }) => doing === "permission" || doing === "question"

/** What it does and for how long. @param {AgentUpdate} agent @param {number} now */
export const doingText = ({ doing, since, isSinceKnown, updatedAt }, now) => {
  if (doing === "gone") return `gone, last heard of ${duration(now - updatedAt)} ago`
  const over = isSinceKnown ? "" : "over "
  return `${DOING[doing].word} · ${over}${duration(now - since)}`
}

/** @param {number} count @param {string} one @param {string} [several] */
const counted = (count, one, several = `${one}s`) => (count === 0 ? [] : [`${count} ${count === 1 ? one : several}`])

/** What has been counted, the shortest way. @param {AgentUpdate} agent @returns {string[]} */
export const factTexts = ({ turns, compactions, handoffs, contextTokens }) => [
  ...counted(turns, "turn"),
  ...counted(compactions, "compaction"),
  ...counted(handoffs, "handoff"),
  ...(contextTokens === undefined ? [] : [`${contextTokens.toLocaleString("en")} tokens`]),
]

/** The time of day on the reader's clock, 24 hours. @param {number} at */
export const clock = (at) => new Date(at).toLocaleTimeString("en-GB")

/** @type {Readonly<Record<HistoryPoint["kind"], string>>} */
const POINTS = {
  permission: DOING.permission.word,
  question: DOING.question.word,
  busy: DOING.busy.word,
  idle: DOING.idle.word,
  started: DOING.started.word,
  gone: DOING.gone.word,
  turn: "turn ended",
  compaction: "compacted",
  handoff: "handed over",
  session: "another session",
}

/** @param {HistoryPoint} point */
export const pointText = ({ kind, text, count }) => {
  const what = text === undefined ? POINTS[kind] : `${POINTS[kind]}: ${text}`
  return count === undefined ? what : `${what}, ${count} times`
}

/** Everything that the filter looks in, in lower case. @param {AgentUpdate} agent */
export const searchText = (agent) => {
  const { name, project, session, task, news, model, waits, doing } = agent
  const asked = waits.map((wait) => (wait.kind === "question" ? `${wait.header} ${wait.text}` : wait.title))
  return [name, project, session, task?.id, task?.role, news?.title, news?.status, model, DOING[doing].word, ...asked]
    .join(" ")
    .toLowerCase()
}

/** @param {readonly AgentUpdate[]} agents */
export const titleText = (agents) => {
  const waiting = agents.filter(isWaiting).length
  return waiting === 0 ? "Agents · Baton" : `(${waiting}) waiting · Baton`
}
