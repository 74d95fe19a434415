import { drawn, element, setAttribute, setText } from "./element.js"
import { axisMinutes, drawTimeline, HEIGHT, LAYERS, stretchAt, summariseTimeline } from "./timeline.js"
import { clock, DOING, doingText, duration, factTexts, pointText } from "./words.js"

/** @import { AgentUpdate } from "../board.ts" */
/** @import { Known } from "./stream.js" */

/** @typedef {{ now: number; span: { minutes: number; step: number } }} View */

const SHOWN_HISTORY = 40
let rows = 0

/** @param {AgentUpdate["waits"][number]} wait */
const waitPanel = (wait) => {
  if (wait.kind === "permission") {
    const kind = wait.type === "" || wait.type === wait.title ? "" : ` (${wait.type})`
    return element(
      "div",
      { class: "wait", "data-kind": "permission" },
      element("p", {}, element("strong", {}, "Permission: "), `${wait.title}${kind}`),
      element("p", { class: "hint" }, "Answer it in OpenCode."),
    )
  }
  const options = wait.options.map((option) => element("li", {}, option))
  return element(
    "div",
    { class: "wait", "data-kind": "question" },
    element("p", {}, wait.header !== "" && element("strong", {}, `${wait.header}: `), wait.text),
    options.length > 0 && element("ul", { class: "options", "aria-label": "Options" }, ...options),
    element("p", { class: "hint" }, "Answer it in OpenCode."),
  )
}

/** @param {AgentUpdate} agent */
const taskLine = ({ task, news }) => {
  if (!task) return [element("span", { class: "quiet" }, "no task")]
  return [
    element("code", {}, task.id),
    element("span", { class: "role" }, task.role),
    news && element("span", { class: "title" }, news.title),
    news && element("span", { class: "status" }, news.status.replaceAll("_", " ")),
  ].filter((part) => part !== undefined)
}

/** @param {{ at: number; message: string }} entry */
const logLine = ({ at, message }) =>
  element("li", {}, at > 0 && element("time", { datetime: new Date(at).toISOString() }, clock(at)), message)

/** @param {Known} known */
const details = ({ agent, points }) => {
  const { session, model, pid, news } = agent
  /** @type {[string, string][]} */
  const facts = [
    ["Session", session ?? "none yet"],
    ["Model", model ?? "not known yet"],
    ["Process", Number.isFinite(pid) ? String(pid) : "unknown"],
    ["Counted", factTexts(agent).join(" · ") || "nothing yet"],
    ...(news?.claim === undefined ? [] : [/** @type {[string, string]} */ (["Claimed by", news.claim])]),
    ...(news?.handoff === undefined ? [] : [/** @type {[string, string]} */ (["Last handoff", news.handoff])]),
  ]
  const log = news?.log ?? []
  const seen = points.slice(-SHOWN_HISTORY).reverse()
  return [
    element(
      "dl",
      {},
      ...facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
    ),
    element(
      "section",
      {},
      element("h4", {}, "Ledger"),
      log.length > 0
        ? element("ol", { class: "log" }, ...log.toReversed().map(logLine))
        : element(
            "p",
            { class: "quiet" },
            agent.task ? "Nothing is recorded yet." : "Without a task nothing is recorded.",
          ),
    ),
    element(
      "section",
      {},
      element("h4", {}, "Seen"),
      element("ol", { class: "log" }, ...seen.map((point) => logLine({ at: point.at, message: pointText(point) }))),
    ),
  ]
}

const createChart = () => {
  const label = drawn("title")
  const svg = drawn("svg", { role: "img", height: String(HEIGHT), preserveAspectRatio: "none" })
  const grid = drawn("path", { class: "grid" })
  const layers = new Map(LAYERS.map((layer) => [layer, drawn("path", { class: `layer ${layer}` })]))
  svg.append(label, grid, ...layers.values())
  return { svg, label, grid, layers }
}

/** One agent. What is not different is left alone, so that fifty of them cost little. */
export const createRow = () => {
  const moreID = `more-${++rows}`
  const mark = element("span", { class: "mark", "aria-hidden": "true" })
  const name = element("span", { class: "label" })
  const toggle = element("button", { class: "name", type: "button", "aria-expanded": "false", "aria-controls": moreID })
  toggle.append(mark, name)
  const doing = element("p", { class: "doing" })
  const chart = createChart()
  const readout = element("p", { class: "readout", "aria-hidden": "true", hidden: "" })
  const timeline = element("div", { class: "timeline" }, chart.svg, readout)
  const waits = element("div", { class: "waits" })
  const task = element("p", { class: "task" })
  const latest = element("p", { class: "latest" })
  const facts = element("p", { class: "facts" })
  const more = element("div", { class: "more", id: moreID, hidden: "" })
  const who = element("div", { class: "who" }, element("h3", {}, toggle), doing)
  const what = element("div", { class: "what" }, timeline, waits, task, latest)
  const row = element("li", { class: "row" }, who, what, facts, more)

  /** @type {Known | undefined} */
  let shown
  /** @type {View | undefined} */
  let view
  let waitsShown = ""
  let taskShown = ""
  let factsShown = ""
  let detailsShown = ""
  let isStale = false
  let isOpen = false

  // Asking for a width after a change makes the browser lay out the page at once, for each row again.
  let width = 0
  new ResizeObserver(([entry]) => {
    width = entry?.contentRect.width ?? 0
    drawChart()
  }).observe(chart.svg)

  const drawChart = () => {
    if (!shown || !view || width === 0) return
    const from = view.now - view.span.minutes * 60_000
    const paths = drawTimeline(shown.points, { from, to: view.now, width })
    for (const [layer, path] of chart.layers) setAttribute(path, "d", paths[layer])
    const { minutes } = view.span
    const lines = axisMinutes(view.span).map((ago) => Math.round(width * (1 - ago / minutes)))
    setAttribute(chart.grid, "d", lines.map((x) => `M${Math.min(Math.max(x, 0.5), width - 0.5)} 0v${HEIGHT}`).join(""))
    setText(chart.label, `The last ${duration(minutes * 60_000)}: ${summariseTimeline(shown.points, from)}`)
  }

  const fillDetails = () => {
    if (!isOpen || !shown) return
    const { agent, points } = shown
    const now = JSON.stringify([{ ...agent, contextTokens: 0, updatedAt: 0, waits: 0 }, points.length, points.at(-1)])
    if (now !== detailsShown) more.replaceChildren(...details(shown))
    detailsShown = now
  }

  const setOpen = (/** @type {boolean} */ next) => {
    isOpen = next
    toggle.setAttribute("aria-expanded", String(next))
    more.hidden = !next
    if (next) fillDetails()
    else {
      more.replaceChildren()
      detailsShown = ""
    }
  }

  toggle.addEventListener("click", () => setOpen(!isOpen))
  timeline.addEventListener("pointermove", (event) => {
    if (!shown || !view) return
    const { left, width } = chart.svg.getBoundingClientRect()
    const share = Math.min(Math.max((event.clientX - left) / width, 0), 1)
    const at = view.now - (1 - share) * view.span.minutes * 60_000
    const point = stretchAt(shown.points, at)
    setText(readout, `${clock(at)} ${point ? pointText(point) : "not watched yet"}`)
    readout.hidden = false
  })
  timeline.addEventListener("pointerleave", () => {
    readout.hidden = true
  })

  /** @param {Known} known */
  const show = (known) => {
    const { agent } = known
    setText(mark, DOING[agent.doing].mark)
    setText(name, agent.name)
    const waitsNow = JSON.stringify(agent.waits)
    if (waitsNow !== waitsShown) waits.replaceChildren(...agent.waits.map(waitPanel))
    waitsShown = waitsNow
    const taskNow = JSON.stringify([agent.task, agent.news?.title, agent.news?.status])
    if (taskNow !== taskShown) task.replaceChildren(...taskLine(agent))
    taskShown = taskNow
    const newest = agent.news?.log.at(-1)
    setText(latest, newest ? newest.message : (agent.news?.handoff ?? ""))
    const factsNow = factTexts(agent)
    if (factsNow.join() !== factsShown) facts.replaceChildren(...factsNow.map((fact) => element("span", {}, fact)))
    factsShown = factsNow.join()
    fillDetails()
  }

  return {
    element: row,
    /** Takes in what is new; it is shown with the next tick, which only rows in view get. @param {Known} known */
    update: (known) => {
      const isFirst = shown === undefined
      shown = known
      isStale = !isFirst
      setAttribute(row, "data-doing", known.agent.doing)
      if (isFirst) show(known)
    },
    /** @param {View} next */
    tick: (next) => {
      view = next
      if (!shown) return
      if (isStale) show(shown)
      isStale = false
      setText(doing, doingText(shown.agent, next.now))
      drawChart()
    },
  }
}
