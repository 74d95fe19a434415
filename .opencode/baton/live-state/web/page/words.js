/** The words for an agent, on the page and in a terminal. */
/** @import { HistoryEvent } from "../../observe/history.ts" */
/** @import { AgentView } from "../../observe/view.ts" */
/** @import { Wait } from "../../observe/waits.ts" */
/** @import { PageAgent } from "../live.ts" */

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** How long: "5 s", "12 min", "3 h", "2 d"; "?" since a time that is none. @param {number} ms */
export const duration = (ms) => {
  if (Number.isNaN(ms)) return "?"
  if (ms < MINUTE) return `${Math.max(0, Math.floor(ms / SECOND))} s`
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`
  return ms < 2 * DAY ? `${Math.floor(ms / HOUR)} h` : `${Math.floor(ms / DAY)} d`
}

/** @type {Readonly<Record<AgentView["doing"]["kind"], { mark: string; word: string }>>} */
export const STATUS = {
  permission: { mark: "!", word: "asks permission" },
  question: { mark: "?", word: "asks" },
  retry: { mark: "↻", word: "asks its provider again" },
  busy: { mark: "●", word: "busy" },
  idle: { mark: "○", word: "idle" },
  started: { mark: "◌", word: "started" },
  gone: { mark: "×", word: "gone" },
  crashed: { mark: "✗", word: "crashed" },
}

/** The request in one line. @param {Wait} wait */
export const describeWait = (wait) =>
  wait.kind === "permission"
    ? [wait.title, wait.subject].filter((part) => part !== "").join(": ")
    : [wait.header, wait.text, wait.options.join(" / ")].filter((part) => part !== "").join(" — ")

/** Whose request it is, where it is not the shown session's own. @param {Wait} wait @param {string} [shown] id of the session */
export const ofWhom = ({ subagent, rootSession, rootTitle }, shown) => [
  ...(subagent === undefined ? [] : [`subagent ${subagent}`]),
  ...(shown === undefined || rootSession === undefined || rootSession === shown
    ? []
    : [`session ${rootTitle ?? rootSession}`]),
]

/** What came back from the provider, and when it is asked next. @param {NonNullable<AgentView["retry"]>} retry @param {number} now */
export const retryText = ({ message, attempt, nextAt, subagent }, now) =>
  [
    message,
    `attempt ${attempt} failed`,
    ...(nextAt === undefined ? [] : [`next try in ${duration(Date.parse(nextAt) - now)}`]),
    ...(subagent === undefined ? [] : [`subagent ${subagent}`]),
  ]
    .filter((part) => part !== "")
    .join(" · ")

/** Waits for a person. @param {AgentView} agent */
export const isWaiting = ({ doing: { kind } }) => kind === "permission" || kind === "question"

/** Its process has ended. @param {Pick<AgentView, "doing">} agent */
export const isOver = ({ doing: { kind } }) => kind === "gone" || kind === "crashed"

/** @param {PageAgent} agent @param {number} now */
export const statusText = (agent, now) => {
  const { doing, since, updatedAt } = agent
  const { word } = STATUS[doing.kind]
  if (isOver(agent)) return `${word}, last heard of ${duration(now - Date.parse(updatedAt))} ago`
  return since === undefined ? word : `${word} · ${duration(now - Date.parse(since))}`
}

/** @param {number} count @param {string} one */
const counted = (count, one) => (count === 0 ? [] : [`${count} ${one}${count === 1 ? "" : "s"}`])

/** The counters, in short. @param {AgentView} agent @returns {string[]} */
export const factTexts = ({ turns, compactions, handoffs, contextTokens }) => [
  ...counted(turns, "turn"),
  ...counted(compactions, "compaction"),
  ...counted(handoffs, "handoff"),
  ...(contextTokens === undefined ? [] : [`${contextTokens.toLocaleString("en")} tokens`]),
]

/** The time of day on the reader's clock, 24 hours. @param {number} at */
export const clock = (at) => new Date(at).toLocaleTimeString("en-GB")

const EVENTS = {
  ...STATUS,
  turn: { word: "turn ended" },
  compaction: { word: "compacted" },
  handoff: { word: "handed over" },
  session: { word: "another session" },
}

/** @param {HistoryEvent} event */
export const eventText = ({ kind, text, count }) => {
  const { word } = EVENTS[kind]
  const what = text === undefined ? word : `${word}: ${text}`
  return count === undefined ? what : `${what}, ${count} times`
}

/** Everything that the filter looks in, in lower case. @param {PageAgent} agent */
export const searchText = (agent) => {
  const { name, title, project, session, task, news, model, doing } = agent
  const asked = "text" in doing ? ["waiting", doing.text] : []
  const words = [name, title, project, session, task?.id, task?.role, news?.title, news?.status, model]
  return [...words, STATUS[doing.kind].word, ...asked].join(" ").toLowerCase()
}

/** How many do what, those that wait first. @param {readonly PageAgent[]} agents */
export const countsText = (agents) =>
  ["waiting", "retry", "busy", "idle", "started", "crashed", "gone"]
    .map((what) => [agents.filter((agent) => (isWaiting(agent) ? "waiting" : agent.doing.kind) === what).length, what])
    .flatMap(([count, what]) => (count === 0 ? [] : `${count} ${what}`))
    .join(" · ")

/** @param {readonly PageAgent[]} agents */
export const titleText = (agents) => {
  const waiting = agents.filter(isWaiting).length
  return waiting === 0 ? "Agents · Baton" : `(${waiting}) waiting · Baton`
}
