import { createRow } from "./agent-row.js"
import { element, setText } from "./element.js"
import { isWaiting, searchText } from "./words.js"

/** @import { AgentUpdate } from "../board.ts" */
/** @import { Known } from "./stream.js" */
/** @import { View } from "./agent-row.js" */

/** @typedef {ReturnType<typeof createRow>} Row */
/** @typedef {"waiting" | "busy" | "idle" | "gone"} Group */

/** @param {AgentUpdate} agent @returns {Group} */
export const groupOf = (agent) => {
  if (isWaiting(agent)) return "waiting"
  if (agent.doing === "gone" || agent.doing === "busy") return agent.doing
  return "idle"
}

/** Who waits stands first, who is gone last; in between nobody moves when work begins and ends. @param {AgentUpdate} agent */
const rank = (agent) => (isWaiting(agent) ? 0 : agent.doing === "gone" ? 2 : 1)

const names = new Intl.Collator("en", { numeric: true })

/** @param {AgentUpdate} a @param {AgentUpdate} b */
export const inOrder = (a, b) => rank(a) - rank(b) || names.compare(a.name, b.name) || (a.key < b.key ? -1 : 1)

/** @param {AgentUpdate} agent @param {{ text: string; group: Group | undefined }} filter */
export const isShown = (agent, { text, group }) =>
  (group === undefined || groupOf(agent) === group) &&
  (text === "" ||
    text
      .toLowerCase()
      .split(/\s+/)
      .every((word) => searchText(agent).includes(word)))

/** Puts nodes in order and touches only those that stand elsewhere. @param {Element} parent @param {readonly Element[]} nodes */
const arrange = (parent, nodes) => {
  nodes.forEach((node, index) => {
    if (parent.children[index] !== node) parent.insertBefore(node, parent.children[index] ?? null)
  })
  while (parent.children.length > nodes.length) parent.lastElementChild?.remove()
}

/** The rows of all agents, by project. @param {HTMLElement} container */
export const createList = (container) => {
  /** @type {Map<string, Row>} */
  const rows = new Map()
  /** @type {Map<string, { section: HTMLElement; heading: HTMLElement; list: HTMLElement }>} */
  const projects = new Map()
  /** Rows that can be seen: the others are drawn when they come into view. @type {Set<Element>} */
  const visible = new Set()
  /** @type {View | undefined} */
  let view

  const watcher = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) visible.add(target)
        else visible.delete(target)
      }
      tickVisible()
    },
    { rootMargin: "200px" },
  )

  const tickVisible = () => {
    for (const row of rows.values()) if (view && visible.has(row.element)) row.tick(view)
  }

  const rowOf = (/** @type {string} */ key) => {
    const known = rows.get(key)
    if (known) return known
    const row = createRow()
    rows.set(key, row)
    watcher.observe(row.element)
    return row
  }

  const sectionOf = (/** @type {string} */ project) => {
    const known = projects.get(project)
    if (known) return known
    const heading = element("h2", {})
    const list = element("ul", { class: "rows" })
    const made = { section: element("section", { class: "project" }, heading, list), heading, list }
    projects.set(project, made)
    return made
  }

  return {
    /** @param {View} next */
    tick: (next) => {
      view = next
      tickVisible()
    },
    /**
     * @param {Map<string, Known>} known
     * @param {ReadonlySet<string>} changed
     * @param {{ text: string; group: Group | undefined }} filter
     * @returns {number} how many are shown
     */
    render: (known, changed, filter) => {
      for (const key of changed) {
        const entry = known.get(key)
        if (entry) rowOf(key).update(entry)
        else {
          const gone = rows.get(key)
          if (gone) {
            watcher.unobserve(gone.element)
            visible.delete(gone.element)
          }
          rows.delete(key)
        }
      }
      const shown = [...known.values()]
        .map(({ agent }) => agent)
        .filter((agent) => isShown(agent, filter))
        .sort(inOrder)
      const byProject = Map.groupBy(shown, ({ project }) => project)
      const shownProjects = [...byProject.keys()].sort(names.compare)
      for (const [project, agents] of byProject) {
        const { heading, list } = sectionOf(project)
        setText(heading, project)
        arrange(
          list,
          agents.map(({ key }) => rowOf(key).element),
        )
      }
      arrange(
        container,
        shownProjects.map((project) => sectionOf(project).section),
      )
      return shown.length
    },
  }
}
