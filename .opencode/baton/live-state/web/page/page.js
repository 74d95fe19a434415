import { createList, groupOf } from "./agent-list.js"
import { byID, drawn, element, setAttribute, setText } from "./element.js"
import { listenToKeys } from "./keyboard.js"
import { openStream, takeUpdate } from "./stream.js"
import { axisMinutes, drawTimeline, fittingSpan, HEIGHT, SPANS } from "./timeline.js"
import { clock, duration, isWaiting, titleText } from "./words.js"

/** @import { Known } from "./stream.js" */
/** @import { Group } from "./agent-list.js" */
/** @import { HistoryPoint } from "../board.ts" */

const TICK_MS = 1_000
/** With more agents than this, rows begin compact. */
const ROOMY_AGENTS = 12
const MINUTE = 60_000

/** @type {Map<string, Known>} */
const known = new Map()
/** @type {Set<string>} */
const changed = new Set()
const list = createList(byID("projects"))
const filterInput = byID("filter")
const spanSelect = byID("span")
const densityButton = byID("density")
/** @type {readonly Group[]} */
const GROUPS = ["waiting", "busy", "idle", "gone"]

/** @type {{ text: string; group: Group | undefined }} */
let filter = { text: "", group: undefined }
/** Index into the lengths to choose from; undefined fits what was seen. @type {number | undefined} */
let chosenSpan
/** @type {"roomy" | "compact" | undefined} */
let chosenDensity
/** The observer's clock is ahead of this one by so much. */
let clockOffset = 0
let isLive = false
let hasAnswer = false
let heardAt = Date.now()
let isFrameDue = false

const now = () => (isLive ? Date.now() + clockOffset : heardAt)
const agents = () => [...known.values()].map(({ agent }) => agent)

const span = () => {
  const chosen = chosenSpan === undefined ? undefined : SPANS[chosenSpan]
  if (chosen) return chosen
  // What went on before the first change is one stretch, however long.
  const first = Math.min(now(), ...[...known.values()].flatMap(({ points }) => points[1]?.at ?? []))
  return fittingSpan(now() - first)
}

const drawAxis = () => {
  const { minutes, step } = span()
  const labels = axisMinutes({ minutes, step }).map((ago) => ({
    text: ago === 0 ? "now" : `−${duration(ago * MINUTE)}`,
    place: `${Math.round((1 - ago / minutes) * 1_000) / 10}%`,
  }))
  const axis = byID("axis")
  if (axis.dataset.labels === JSON.stringify(labels)) return
  axis.dataset.labels = JSON.stringify(labels)
  const ticks = labels.map(({ text, place }) => {
    const tick = element("span", {}, text)
    tick.style.left = place
    return tick
  })
  axis.replaceChildren(element("div", {}, ...ticks))
}

const tick = () => {
  drawAxis()
  list.tick({ now: now(), span: span() })
  if (!isLive && hasAnswer)
    setText(
      byID("lost"),
      `The connection to the observer is lost. This is what it saw at ${clock(heardAt)}, ${duration(Date.now() + clockOffset - heardAt)} ago. Trying again …`,
    )
}

const renderCounts = () => {
  const counts = byID("counts")
  for (const group of GROUPS) {
    const count = agents().filter((agent) => groupOf(agent) === group).length
    let button = counts.querySelector(`[data-group="${group}"]`)
    if (!button) {
      button = element("button", { type: "button", "data-group": group }, element("b", {}), ` ${group}`)
      button.addEventListener("click", () => {
        filter = { ...filter, group: filter.group === group ? undefined : group }
        render()
      })
      counts.append(button)
    }
    setAttribute(button, "aria-pressed", String(filter.group === group))
    setAttribute(button, "data-count", String(count))
    const number = button.firstElementChild
    if (number) setText(number, String(count))
  }
}

const render = () => {
  isFrameDue = false
  const shown = list.render(known, changed, filter)
  changed.clear()
  renderCounts()
  byID("empty").hidden = !hasAnswer || known.size > 0
  byID("none").hidden = known.size === 0 || shown > 0
  byID("axis").hidden = shown === 0
  byID("legend").hidden = known.size === 0
  const density = chosenDensity ?? (known.size > ROOMY_AGENTS ? "compact" : "roomy")
  document.body.dataset.density = density
  setAttribute(densityButton, "aria-pressed", String(density === "compact"))
  tick()
}

/** Changes come in bursts; the page is drawn once a frame. */
const renderSoon = () => {
  if (isFrameDue) return
  isFrameDue = true
  requestAnimationFrame(render)
}

/** Only what needs a person is said aloud. @param {ReadonlySet<string>} before keys of those that waited */
const announceWaits = (before) => {
  const fresh = agents().filter((agent) => isWaiting(agent) && !before.has(agent.key))
  if (fresh.length > 0) setText(byID("announcer"), `${fresh.map(({ name }) => name).join(", ")} waits for you`)
}

const setConnection = (/** @type {"live" | "lost"} */ state) => {
  heardAt = state === "live" ? Date.now() + clockOffset : heardAt
  if (isLive === (state === "live") && document.body.dataset.connection === state) return
  isLive = state === "live"
  document.body.dataset.connection = state
  setText(byID("connection"), isLive ? "Live" : "Lost")
  byID("lost").hidden = isLive || !hasAnswer
  tick()
}

const setDensity = () => {
  chosenDensity = document.body.dataset.density === "compact" ? "roomy" : "compact"
  render()
}

const setSpan = (/** @type {number | undefined} */ index) => {
  chosenSpan = index
  if (spanSelect instanceof HTMLSelectElement) spanSelect.value = index === undefined ? "" : String(index)
  tick()
}

const stepSpan = (/** @type {1 | -1} */ step) => {
  const here = chosenSpan ?? SPANS.indexOf(span())
  setSpan(Math.min(Math.max(here + step, 0), SPANS.length - 1))
}

const clearFilter = () => {
  filter = { text: "", group: undefined }
  if (filterInput instanceof HTMLInputElement) filterInput.value = ""
  render()
}

/** The legend is drawn by what draws the timelines. */
const fillLegend = () => {
  /** @type {readonly [string, HistoryPoint["kind"], number][]} */
  const samples = [
    ["busy", "busy", 0],
    ["idle", "idle", 0],
    ["permission", "permission", 0],
    ["question", "question", 0],
    ["turn ended", "turn", 8],
    ["compaction", "compaction", 8],
    ["handoff", "handoff", 8],
  ]
  for (const [word, kind, at] of samples) {
    const width = at === 0 ? 24 : 16
    const svg = drawn("svg", { width: String(width), height: String(HEIGHT), "aria-hidden": "true" })
    for (const [layer, d] of Object.entries(drawTimeline([{ at, kind }], { from: 0, to: width, width })))
      if (d !== "") svg.append(drawn("path", { class: `layer ${layer}`, d }))
    byID("legend").append(element("span", {}, svg, word))
  }
}

spanSelect.append(
  element("option", { value: "" }, "Fitting"),
  ...SPANS.map(({ minutes }, index) => element("option", { value: String(index) }, duration(minutes * MINUTE))),
)
spanSelect.addEventListener("change", () => {
  if (spanSelect instanceof HTMLSelectElement) setSpan(spanSelect.value === "" ? undefined : Number(spanSelect.value))
})
filterInput.addEventListener("input", () => {
  if (filterInput instanceof HTMLInputElement) filter = { ...filter, text: filterInput.value.trim() }
  render()
})
densityButton.addEventListener("click", setDensity)
listenToKeys({ clear: clearFilter, density: setDensity, shorter: () => stepSpan(-1), longer: () => stepSpan(1) })
fillLegend()
setInterval(tick, TICK_MS)
addEventListener("resize", renderSoon)
openStream({
  onUpdate: (update) => {
    const before = new Set(
      agents()
        .filter(isWaiting)
        .map(({ key }) => key),
    )
    for (const key of takeUpdate(known, update)) changed.add(key)
    // Here and not with the rest: a page in a background tab draws no frames.
    document.title = titleText(agents())
    if (hasAnswer) announceWaits(before)
    hasAnswer = true
    renderSoon()
  },
  onConnection: setConnection,
  onClock: (observersNow) => {
    clockOffset = observersNow - Date.now()
  },
})
