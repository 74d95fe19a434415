import { createRow, drawn, drawnLayer, element, setText } from "./row.js"
import { axisMinutes, drawTimeline, fittingSpan, HEIGHT } from "./timeline.js"
import { clock, duration, isWaiting, searchText, titleText } from "./words.js"

/** @import { HistoryEvent } from "../../observe/history.ts" */
/** @import { PageAgent, PageMessage } from "../live.ts" */
/** @typedef {"waiting" | "busy" | "idle" | "gone"} Group */

const TICK_MS = 1_000
/** Three of the observer's beats; a connection may be lost without a word. */
const SILENCE_MS = 16_000
const REOPEN_MS = 2_000
const REFUSED = "The observer tells this page nothing: open the address that it printed, with all that is behind the #."
/** @type {readonly Group[]} */
const GROUPS = ["waiting", "busy", "idle", "gone"]

/** @param {string} id @returns {HTMLElement} */
const byID = (id) => {
  const found = document.getElementById(id)
  if (!found) throw new Error(`the page has no #${id}`)
  return found
}
const filterInput = /** @type {HTMLInputElement} */ (byID("filter"))

/** @type {Map<string, PageAgent>} */
const agents = new Map()
/** @type {Map<string, ReturnType<typeof createRow>>} */
const rows = new Map()
/** @type {Map<string, { section: HTMLElement; list: HTMLElement }>} */
const sections = new Map()
/** @type {Group | undefined} */
let chosenGroup
/** The observer's clock is ahead of this one by so much. */
let clockOffset = 0
let isLive = false
let hasAnswer = false
let isRefused = false
let heardAt = Date.now()
let isFrameDue = false

const now = () => (isLive ? Date.now() + clockOffset : heardAt)

/** @param {PageAgent} agent @returns {Group} */
const groupOf = (agent) => {
  const { kind } = agent.doing
  return isWaiting(agent) ? "waiting" : kind === "gone" || kind === "busy" ? kind : "idle"
}

/** Agents that wait stand first, those that are gone last; in between none moves when work begins and ends. @param {PageAgent} agent */
const rank = (agent) => (isWaiting(agent) ? 0 : agent.doing.kind === "gone" ? 2 : 1)
const names = new Intl.Collator("en", { numeric: true })

const shownAgents = () => {
  const words = filterInput.value.trim().toLowerCase().split(/\s+/)
  return [...agents.values()]
    .filter((agent) => chosenGroup === undefined || groupOf(agent) === chosenGroup)
    .filter((agent) => words.every((word) => searchText(agent).includes(word)))
    .sort((a, b) => rank(a) - rank(b) || names.compare(a.name, b.name) || (a.key < b.key ? -1 : 1))
}

/** Puts nodes in order and touches only those that stand elsewhere. @param {Element} parent @param {readonly Element[]} nodes */
const arrange = (parent, nodes) => {
  nodes.forEach((node, index) => {
    if (parent.children[index] !== node) parent.insertBefore(node, parent.children[index] ?? null)
  })
  while (parent.children.length > nodes.length) parent.lastElementChild?.remove()
}

const span = () => {
  // What went on before the first change is one status, however long.
  const first = Math.min(now(), ...[...agents.values()].flatMap(({ history }) => history[1]?.at ?? []))
  return fittingSpan(now() - first)
}

const drawAxis = () => {
  const { minutes, step } = span()
  const axis = byID("axis")
  if (axis.dataset.minutes === String(minutes)) return
  axis.dataset.minutes = String(minutes)
  const ticks = axisMinutes({ minutes, step }).map((ago) => {
    const tick = element("span", {}, ago === 0 ? "now" : `−${duration(ago * 60_000)}`)
    tick.style.left = `${Math.round((1 - ago / minutes) * 1_000) / 10}%`
    return tick
  })
  axis.replaceChildren(element("div", {}, ...ticks))
}

const tick = () => {
  drawAxis()
  const view = { now: now(), span: span() }
  for (const row of rows.values()) if (row.element.isConnected) row.tick(view)
  byID("lost").hidden = isLive || !(hasAnswer || isRefused)
  if (isRefused) setText(byID("lost"), REFUSED)
  if (isLive || !hasAnswer || isRefused) return
  const ago = duration(Date.now() + clockOffset - heardAt)
  const what = `This is what it saw at ${clock(heardAt)}, ${ago} ago. Trying again …`
  setText(byID("lost"), `The connection to the observer is lost. ${what}`)
}

/** @param {Group} group */
const countButton = (group) => {
  const button = element("button", { type: "button", "data-group": group }, element("b", {}), ` ${group}`)
  button.addEventListener("click", () => {
    chosenGroup = chosenGroup === group ? undefined : group
    render()
  })
  byID("counts").append(button)
  return { group, button }
}
const countButtons = GROUPS.map(countButton)

const render = () => {
  isFrameDue = false
  const shown = shownAgents()
  // Sorted by who waits, so a project with an agent that waits comes first.
  const byProject = Map.groupBy(shown, ({ project }) => project)
  for (const [project, list] of byProject) {
    const known = sections.get(project) ?? {
      section: element("section", { class: "project" }),
      list: element("ul", { class: "rows" }),
    }
    if (!sections.has(project)) known.section.append(element("h2", {}, project), known.list)
    sections.set(project, known)
    arrange(
      known.list,
      list.flatMap(({ key }) => rows.get(key)?.element ?? []),
    )
  }
  arrange(
    byID("projects"),
    [...byProject.keys()].flatMap((project) => sections.get(project)?.section ?? []),
  )
  for (const { group, button } of countButtons) {
    const count = [...agents.values()].filter((agent) => groupOf(agent) === group).length
    button.setAttribute("aria-pressed", String(chosenGroup === group))
    button.dataset.count = String(count)
    if (button.firstElementChild) setText(button.firstElementChild, String(count))
  }
  byID("empty").hidden = !hasAnswer || agents.size > 0
  byID("none").hidden = agents.size === 0 || shown.length > 0
  byID("axis").hidden = shown.length === 0
  byID("legend").hidden = agents.size === 0
  tick()
}

/** Changes come in bursts; the page is drawn once a frame. */
const renderSoon = () => {
  if (isFrameDue) return
  isFrameDue = true
  requestAnimationFrame(render)
}

/** @param {PageMessage} message */
const receive = ({ now, keys, agents: changed }) => {
  clockOffset = now - Date.now()
  const fresh = changed.filter((agent) => {
    const before = agents.get(agent.key)
    return isWaiting(agent) && !(before && isWaiting(before))
  })
  for (const agent of changed) {
    agents.set(agent.key, agent)
    const row = rows.get(agent.key) ?? createRow(agent.key)
    rows.set(agent.key, row)
    row.update(agent)
  }
  const present = new Set(keys)
  for (const key of agents.keys()) {
    if (present.has(key)) continue
    agents.delete(key)
    rows.delete(key)
  }
  // Here and not with the rest: a page in a background tab draws no frames.
  document.title = titleText([...agents.values()])
  // Only requests for a person are said aloud.
  if (hasAnswer && fresh.length > 0)
    setText(byID("announcer"), `${fresh.map(({ name }) => name).join(", ")} waits for you`)
  hasAnswer = true
  setLive(true)
  renderSoon()
}

/** @param {boolean} next */
const setLive = (next) => {
  if (next) heardAt = Date.now() + clockOffset
  isLive = next
  document.body.dataset.connection = next ? "live" : "lost"
  setText(byID("connection"), next ? "Live" : "Lost")
}

/** Keeps a stream open for as long as the page is; the first message has all agents. */
const openStream = () => {
  const source = new EventSource(`/events?${location.hash.slice(1)}`)
  let lastAt = performance.now()
  const lose = () => {
    setLive(false)
    tick()
  }
  const again = () => {
    clearInterval(watch)
    source.close()
    lose()
    setTimeout(openStream, REOPEN_MS)
  }
  const watch = setInterval(() => {
    if (performance.now() - lastAt > SILENCE_MS) again()
  }, REOPEN_MS)
  source.addEventListener("message", ({ data }) => {
    lastAt = performance.now()
    isRefused = false
    receive(JSON.parse(data))
  })
  // The browser tries again by itself, unless the observer refused.
  source.addEventListener("error", () => {
    isRefused = source.readyState === EventSource.CLOSED
    if (isRefused) again()
    else lose()
  })
}

/** The legend is drawn by the code that draws the timelines. */
const fillLegend = () => {
  /** @type {readonly [HistoryEvent["kind"], string][]} */
  const samples = [
    ["busy", "busy"],
    ["idle", "idle"],
    ["permission", "permission"],
    ["question", "question"],
    ["turn", "turn ended"],
    ["compaction", "compaction"],
    ["handoff", "handoff"],
  ]
  for (const [kind, word] of samples.toReversed()) {
    const isMark = ["turn", "compaction", "handoff"].includes(kind)
    const [at, width] = isMark ? [8, 16] : [0, 24]
    const paths = Object.entries(drawTimeline([{ at, kind }], { from: 0, to: width, width }))
    const shapes = paths.flatMap(([layer, d]) => (d === "" ? [] : drawnLayer(layer, d)))
    const svg = drawn("svg", { width: String(width), height: String(HEIGHT), "aria-hidden": "true" }, ...shapes)
    byID("legend").prepend(element("span", {}, svg, word))
  }
}

/** @param {string} selector @param {1 | -1} step */
const moveFocus = (selector, step) => {
  const targets = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(selector)])
  const here = targets.indexOf(/** @type {HTMLElement} */ (document.activeElement))
  const next = here < 0 ? (step > 0 ? 0 : targets.length - 1) : (here + step + targets.length) % targets.length
  targets[next]?.focus()
  targets[next]?.closest(".row")?.scrollIntoView({ block: "nearest" })
}

/** @type {Record<string, () => void>} */
const KEYS = {
  j: () => moveFocus(".row .name", 1),
  k: () => moveFocus(".row .name", -1),
  w: () => moveFocus('.row:is([data-doing="permission"], [data-doing="question"]) .name', 1),
  "/": () => filterInput.focus(),
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return
  if (event.key === "Escape") {
    filterInput.value = ""
    chosenGroup = undefined
    filterInput.blur()
    return render()
  }
  const action = document.activeElement === filterInput ? undefined : KEYS[event.key]
  if (!action) return
  event.preventDefault()
  action()
})
filterInput.addEventListener("input", render)
fillLegend()
setInterval(tick, TICK_MS)
openStream()
