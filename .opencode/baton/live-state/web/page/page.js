import { createRow, drawn, drawnLayer, element, setText } from "./row.js"
import { axisMinutes, drawTimeline, fittingSpan, HEIGHT } from "./timeline.js"
import { clock, countsText, duration, isOver, isWaiting, searchText, titleText } from "./words.js"

/** @import { HistoryEvent } from "../../observe/history.ts" */
/** @import { PageAgent, PageMessage } from "../live.ts" */

const TICK_MS = 1_000
/** Three of the observer's beats; a connection may be lost without a word. */
const SILENCE_MS = 16_000
const REOPEN_MS = 2_000
const LOST = "The connection to the observer is lost. Trying again …"
const REFUSED =
  "The observer tells this page nothing: open the address that it printed last, with all that is behind the #."
const ENDED = "The observer has ended. Start it again, and open the address that it prints."
const WAITING = "Waiting for you"

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
/** The observer's clock is ahead of this one by so much. */
let clockOffset = 0
let isLive = false
let hasAnswer = false
/** Why the page is not live any more. */
let problem = ""
let heardAt = Date.now()
let isFrameDue = false

const now = () => (isLive ? Date.now() + clockOffset : heardAt)

/** Agents that wait stand first, those that are over last; in between none moves when work begins and ends. @param {PageAgent} agent */
const rank = (agent) => (isWaiting(agent) ? 0 : isOver(agent) ? 2 : 1)
const names = new Intl.Collator("en", { numeric: true })

const shownAgents = () => {
  const words = filterInput.value.trim().toLowerCase().split(/\s+/)
  return [...agents.values()]
    .filter((agent) => words.every((word) => searchText(agent).includes(word)))
    .sort(
      (a, b) => rank(a) - rank(b) || names.compare(a.title ?? a.name, b.title ?? b.name) || (a.key < b.key ? -1 : 1),
    )
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
  const lost = byID("lost")
  lost.hidden = isLive || problem === ""
  if (lost.hidden) return
  const ago = duration(Date.now() + clockOffset - heardAt)
  setText(lost, hasAnswer ? `${problem} This is what it saw at ${clock(heardAt)}, ${ago} ago.` : problem)
}

const render = () => {
  isFrameDue = false
  const shown = shownAgents()
  const groups = Map.groupBy(shown, (agent) => (isWaiting(agent) ? WAITING : agent.project))
  for (const [heading, list] of groups) {
    const known = sections.get(heading) ?? {
      section: element("section", { class: "project" }),
      list: element("ul", { class: "rows" }),
    }
    if (!sections.has(heading)) known.section.append(element("h2", {}, heading), known.list)
    sections.set(heading, known)
    arrange(
      known.list,
      list.flatMap(({ key }) => rows.get(key)?.element ?? []),
    )
  }
  arrange(
    byID("projects"),
    [...groups.keys()].flatMap((heading) => sections.get(heading)?.section ?? []),
  )
  setText(byID("counts"), countsText([...agents.values()]))
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
    setText(byID("announcer"), `${fresh.map(({ title, name }) => title ?? name).join(", ")} waits for you`)
  hasAnswer = true
  heardAt = now
  setLive(true)
  renderSoon()
}

/** @param {boolean} next */
const setLive = (next) => {
  isLive = next
  document.body.dataset.connection = next ? "live" : "lost"
  setText(byID("connection"), next ? "Live" : "Lost")
}

/** @param {string} why */
const lose = (why) => {
  problem = why
  setLive(false)
  tick()
}

/** Keeps a stream open for as long as the page is; the first message has all agents. */
const openStream = () => {
  const source = new EventSource(`/events?${location.hash.slice(1)}`)
  let lastAt = performance.now()
  /** @param {string} why */
  const end = (why) => {
    clearInterval(watch)
    source.close()
    lose(why)
  }
  /** @param {string} why */
  const again = (why) => {
    end(why)
    setTimeout(openStream, REOPEN_MS)
  }
  const watch = setInterval(() => {
    if (performance.now() - lastAt > SILENCE_MS) again(LOST)
  }, REOPEN_MS)
  source.addEventListener("message", ({ data }) => {
    lastAt = performance.now()
    receive(JSON.parse(data))
  })
  source.addEventListener("end", () => end(ENDED))
  // The browser tries again by itself, unless the observer refused.
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) again(REFUSED)
    else lose(LOST)
  })
}

/** The legend is drawn by the code that draws the timelines. */
const fillLegend = () => {
  /** @type {readonly [HistoryEvent["kind"], string][]} */
  const samples = [
    ["busy", "busy"],
    ["idle", "idle"],
    ["retry", "provider asked again"],
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
    // Marks stand above and below the bars; beside a word they stand in its middle.
    const top = kind === "turn" ? 12 : isMark ? -11 : 0
    const frame = { viewBox: `0 ${top} ${width} ${HEIGHT}`, width: String(width), height: String(HEIGHT) }
    const svg = drawn("svg", { ...frame, "aria-hidden": "true" }, ...shapes)
    byID("legend").prepend(element("span", {}, svg, word))
  }
}

filterInput.addEventListener("input", render)
// The next start's address on the same port: a browser loads nothing when only what is behind the # changes.
addEventListener("hashchange", () => location.reload())
fillLegend()
setInterval(tick, TICK_MS)
openStream()
