/** Text is only ever put in as text; this page makes no markup from what it is sent. */

const SVG = "http://www.w3.org/2000/svg"

/** @typedef {string | Node | false | undefined} Child */

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, string>} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export const element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value)
  made.append(...children.filter((child) => child !== false && child !== undefined))
  return made
}

/**
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, string>} [attributes]
 * @returns {SVGElementTagNameMap[T]}
 */
export const drawn = (tag, attributes = {}) => {
  const made = document.createElementNS(SVG, tag)
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value)
  return made
}

/** Touches the page only when something is different. @param {Element} node @param {string} text */
export const setText = (node, text) => {
  if (node.textContent !== text) node.textContent = text
}

/** @param {Element} node @param {string} name @param {string} value */
export const setAttribute = (node, name, value) => {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value)
}

/** @param {string} id @returns {HTMLElement} */
export const byID = (id) => {
  const found = document.getElementById(id)
  if (!found) throw new Error(`the page has no #${id}`)
  return found
}
