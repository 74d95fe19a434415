import { byID, element } from "./element.js"

/** @type {readonly [string, string][]} */
const SHORTCUTS = [
  ["j  k", "next and previous agent"],
  ["w", "next agent that waits for you"],
  ["Enter", "show or hide what is known of the agent"],
  ["/", "filter"],
  ["−  +", "shorter and longer timelines"],
  ["d", "compact or roomy"],
  ["Esc", "clear the filter"],
  ["?", "these keys"],
]

/** @param {Element | null} target */
const isTyping = (target) => target instanceof HTMLInputElement || target instanceof HTMLSelectElement

/** @param {string} selector @param {1 | -1} step */
const moveFocus = (selector, step) => {
  const targets = [...document.querySelectorAll(selector)].filter((each) => each instanceof HTMLElement)
  if (targets.length === 0) return
  const focused = document.activeElement
  const here = focused instanceof HTMLElement ? targets.indexOf(focused) : -1
  const next = here < 0 ? (step > 0 ? 0 : targets.length - 1) : (here + step + targets.length) % targets.length
  targets[next]?.focus()
  targets[next]?.closest(".row")?.scrollIntoView({ block: "nearest" })
}

/** Single keys, as long as nobody types. @param {Record<"clear" | "density" | "shorter" | "longer", () => void>} actions */
export const listenToKeys = ({ clear, density, shorter, longer }) => {
  const dialog = byID("keys")
  const filter = byID("filter")
  if (!(dialog instanceof HTMLDialogElement)) throw new Error("#keys is no dialog")
  for (const [keys, what] of SHORTCUTS) {
    const shown = keys.split("  ").map((key) => element("kbd", {}, key))
    byID("keys-list").append(element("div", {}, element("dt", {}, ...shown), element("dd", {}, what)))
  }
  /** @type {Record<string, () => void>} */
  const actions = {
    j: () => moveFocus(".row .name", 1),
    k: () => moveFocus(".row .name", -1),
    w: () => moveFocus('.row:is([data-doing="permission"], [data-doing="question"]) .name', 1),
    "/": () => filter.focus(),
    "-": shorter,
    "+": longer,
    "=": longer,
    d: density,
    "?": () => dialog.showModal(),
  }
  byID("keys-close").addEventListener("click", () => dialog.close())
  byID("help").addEventListener("click", () => dialog.showModal())
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return
    if (event.key === "Escape") {
      clear()
      if (document.activeElement === filter) filter.blur()
      return
    }
    if (isTyping(document.activeElement)) return
    const action = actions[event.key]
    if (!action) return
    event.preventDefault()
    action()
  })
}
