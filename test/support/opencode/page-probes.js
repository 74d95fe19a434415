/** Questions of tests to a page in the browser; each is sent there as it is and uses nothing from outside itself. */

export const widthsOnPage = () => [document.documentElement.scrollWidth, innerWidth]

export const focusedText = () => document.activeElement?.textContent ?? ""

export const countUnnamedButtons = () =>
  [...document.querySelectorAll("button")].filter((button) => button.textContent?.trim() === "").length

/** Whether markup made from text is refused (Trusted Types). */
export const refusesMarkup = () => {
  try {
    document.body.innerHTML = "<b>markup</b>"
    return false
  } catch {
    return true
  }
}

/** The page's colours in pairs, by WCAG 2.2: 4.5 for text (1.4.3), 3 for what is drawn (1.4.11). */
export const contrastsOnPage = () => {
  const sample = document.body.appendChild(document.createElement("i"))
  const luminance = (name) => {
    sample.style.color = `var(${name})`
    const [r, g, b] = getComputedStyle(sample)
      .color.match(/\d+/g)
      .map((part) => Number(part) / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const pairs = [
    ["--ink", "--sheet", 4.5],
    ["--quiet", "--sheet", 4.5],
    ["--quiet", "--paper", 4.5],
    ["--permission-ink", "--permission-paper", 4.5],
    ["--question-ink", "--question-paper", 4.5],
    ["--lost", "--lost-paper", 4.5],
    ...["--busy", "--permission", "--question", "--compaction", "--handoff"].map((name) => [name, "--sheet", 3]),
  ]
  return pairs.map(([one, other, least]) => {
    const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a)
    return { pair: `${one} on ${other}`, isEnough: (light + 0.05) / (dark + 0.05) >= least }
  })
}
