import { axisMinutes, drawTimeline, HEIGHT, LAYERS, summariseTimeline } from "./timeline.js"
import { clock, duration, eventText, factTexts, isWaiting, ofWhom, retryText, STATUS, statusText } from "./words.js"

/** @import { PageAgent } from "../live.ts" */
/** @typedef {{ now: number; span: { minutes: number; step: number } }} View */
/** @typedef {string | Node | false | undefined} Child */

const SHOWN_EVENTS = 40

/** Text is only ever put in as text: no markup is made from what the page is sent.
 * @template {Element} T
 * @param {T} made
 * @param {Record<string, string>} attributes
 * @param {Child[]} children
 * @returns {T}
 */
const fill = (made, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value)
  made.append(...children.filter((child) => child !== false && child !== undefined))
  return made
}

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, string>} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export const element = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children)

/**
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, string>} [attributes]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[T]}
 */
export const drawn = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children)

/** @param {string} layer of a timeline @param {string} [d] */
export const drawnLayer = (layer, d = "") => {
  const path = drawn("path", { class: `layer ${layer}`, d })
  path.style.fill = `var(--${layer}, var(--quiet))`
  return path
}

/** Touches the page only when something is different. @param {Element} node @param {string} text */
export const setText = (node, text) => {
  if (node.textContent !== text) node.textContent = text
}

/** @param {PageAgent["waits"][number]} wait @param {string | undefined} session of the agent */
const waitPanel = (wait, session) => {
  const [heading, text] = wait.kind === "question" ? [wait.header, wait.text] : ["Permission", wait.title]
  const options = wait.kind === "question" ? wait.options : []
  return element(
    "div",
    { class: "wait", "data-kind": wait.kind },
    element("p", {}, heading !== "" && element("strong", {}, `${heading}: `), text),
    wait.kind === "permission" && wait.subject !== "" && element("code", {}, wait.subject),
    options.length > 0 && element("ul", { class: "options" }, ...options.map((option) => element("li", {}, option))),
    ...ofWhom(wait, session).map((who) => element("p", { class: "whose" }, who)),
    element(
      "p",
      { class: "hint" },
      wait.goTo === undefined ? "Answer it in OpenCode." : "To answer: ",
      wait.goTo !== undefined && element("code", {}, wait.goTo),
    ),
    wait.answer !== undefined && element("p", { class: "hint" }, element("code", {}, wait.answer)),
  )
}

/** @param {PageAgent} agent */
const taskLine = ({ task, news }) =>
  task
    ? [
        element("code", {}, task.id),
        element("span", { class: "role" }, task.role),
        ...(news ? [element("span", {}, news.title)] : []),
        ...(news ? [element("span", { class: "status" }, news.status.replaceAll("_", " "))] : []),
      ]
    : [element("span", { class: "quiet" }, "no task")]

/** @param {number} at @param {string} text */
const logLine = (at, text) =>
  element("li", {}, at > 0 && element("time", { datetime: new Date(at).toISOString() }, clock(at)), text)

/** @param {string} title @param {HTMLElement[]} lines @param {string} instead */
const logSection = (title, lines, instead) =>
  element(
    "section",
    {},
    element("h4", {}, title),
    lines.length > 0 ? element("ol", { class: "log" }, ...lines) : element("p", { class: "quiet" }, instead),
  )

/** @param {PageAgent} agent */
const details = ({ name, session, model, pid, task, news, history }) => {
  /** @type {[string, string | undefined][]} */
  const facts = [
    ["Agent", name],
    ["Session", session],
    ["Model", model],
    ["Process", String(pid)],
    ["Claimed by", news?.claim],
    ["Last handoff", news?.handoff],
  ]
  const terms = facts.flatMap(([name, value]) =>
    value === undefined ? [] : element("div", {}, element("dt", {}, name), element("dd", {}, value)),
  )
  const log = (news?.log ?? []).map(({ createdAt, message }) => logLine(Date.parse(createdAt), message))
  const seen = history.slice(-SHOWN_EVENTS).map((event) => logLine(event.at, eventText(event)))
  return [
    element("dl", {}, ...terms),
    logSection("Task's log", log.reverse(), task ? "Nothing is recorded yet." : "Without a task nothing is recorded."),
    logSection("What happened", seen.reverse(), ""),
  ]
}

/** One agent. Parts that stay the same are not touched, so that fifty agents cost little. @param {string} key */
export const createRow = (key) => {
  const id = `more-${key}`
  const mark = element("span", { class: "mark", "aria-hidden": "true" })
  const name = element("span", { class: "label" })
  const toggle = element(
    "button",
    { class: "name", type: "button", "aria-expanded": "false", "aria-controls": id },
    mark,
    name,
  )
  const status = element("p", { class: "doing" })
  const place = element("p", { class: "place" })
  const label = drawn("title")
  const grid = drawn("path", { class: "grid" })
  const layers = LAYERS.map((layer) => /** @type {const} */ ([layer, drawnLayer(layer)]))
  const chart = { role: "img", height: String(HEIGHT), preserveAspectRatio: "none" }
  const svg = drawn("svg", chart, label, grid, ...layers.map(([, path]) => path))
  const waits = element("div", { class: "waits" })
  const retry = element("p", { class: "retry" })
  const task = element("p", { class: "task" })
  const latest = element("p", { class: "latest" })
  const facts = element("p", { class: "facts" })
  const more = element("div", { class: "more", id, hidden: "" })
  const who = element("div", { class: "who" }, element("h3", {}, toggle), status, place)
  const what = element("div", { class: "what" }, svg, waits, retry, task, latest)
  const row = element("li", { class: "row" }, who, what, facts, more)

  /** @type {PageAgent | undefined} */
  let agent
  /** @type {View | undefined} */
  let view
  // Asking for a width after a change makes the browser lay out the page at once, for each row again.
  let width = 0
  new ResizeObserver(([entry]) => {
    width = entry?.contentRect.width ?? 0
    draw()
  }).observe(svg)

  const draw = () => {
    if (!agent || !view) return
    const { now, span } = view
    setText(status, statusText(agent, now))
    setText(retry, agent.retry ? retryText(agent.retry, now) : "")
    if (width === 0) return
    const from = now - span.minutes * 60_000
    const paths = drawTimeline(agent.history, { from, to: now, width })
    for (const [layer, path] of layers) path.setAttribute("d", paths[layer])
    const lines = axisMinutes(span).map((ago) => Math.round(width * (1 - ago / span.minutes)))
    grid.setAttribute("d", lines.map((x) => `M${Math.min(Math.max(x, 0.5), width - 0.5)} 0v${HEIGHT}`).join(""))
    setText(label, `The last ${duration(span.minutes * 60_000)}: ${summariseTimeline(agent.history, from)}`)
  }

  /** Replaces the children when what they show is different. @param {Element} parent @param {unknown} shown @param {() => Child[]} make */
  const renew = (parent, shown, make) => {
    const text = JSON.stringify(shown)
    if (rendered.get(parent) === text) return
    rendered.set(parent, text)
    parent.replaceChildren(...make().filter((child) => child !== false && child !== undefined))
  }
  /** @type {Map<Element, string>} */
  const rendered = new Map()

  const showDetails = () => {
    const shown = agent
    if (shown && !more.hidden) renew(more, [shown.news, shown.history.at(-1), shown.session], () => details(shown))
  }

  toggle.addEventListener("click", () => {
    more.hidden = !more.hidden
    toggle.setAttribute("aria-expanded", String(!more.hidden))
    showDetails()
  })

  const show = () => {
    if (!agent) return
    const { doing, waits: requests, task: ownTask, news } = agent
    const [shown, counted] = [agent, factTexts(agent)]
    setText(mark, STATUS[doing.kind].mark)
    setText(name, agent.title ?? agent.name)
    // Agents that wait stand apart from their project.
    setText(place, isWaiting(agent) ? agent.project : "")
    renew(waits, requests, () => requests.map((wait) => waitPanel(wait, shown.session)))
    renew(task, [ownTask, news?.title, news?.status], () => taskLine(shown))
    setText(latest, news?.log.at(-1)?.message ?? news?.handoff ?? "")
    renew(facts, counted, () => counted.map((fact) => element("span", {}, fact)))
    showDetails()
  }

  return {
    element: row,
    /** @param {PageAgent} next */
    update: (next) => {
      agent = next
      row.dataset.doing = next.doing.kind
      show()
    },
    /** @param {View} next */
    tick: (next) => {
      view = next
      draw()
    },
  }
}
