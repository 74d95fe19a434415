import { estimateTokens } from "../../test/support/request-size.ts"
import type { Figure } from "./results.ts"

/** Three significant digits, and whole numbers from 100 on. */
export const formatNumber = (value: number): string =>
  Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)))

export const formatValue = (value: number, unit: Figure["unit"]): string =>
  unit === "×" ? `${formatNumber(value)}×` : `${formatNumber(value)} ${unit}`

/** A Markdown table; numbers stand on the right. */
export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map((_, index) => (index === 0 ? "---" : "---:")), ...rows]
    .map((cells) => `| ${cells.join(" | ")} |`)
    .join("\n")

/** Characters with their sign, and the tokens they are estimated at. */
export const formatAddition = (characters: number): string => {
  const sign = characters < 0 ? "−" : "+"
  const size = Math.abs(characters)
  return `${sign}${size.toLocaleString("en")} (${estimateTokens(size).toLocaleString("en")})`
}
