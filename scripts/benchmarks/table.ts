/** Three significant digits, and whole numbers from 100 on. */
export const formatNumber = (value: number): string =>
  Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)))

export const formatValue = (value: number, unit: string): string =>
  unit === "×" ? `${formatNumber(value)}×` : `${formatNumber(value)} ${unit}`

/** A table of Markdown, its first column to the left. */
export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map((_, index) => (index === 0 ? "---" : "---:")), ...rows]
    .map((cells) => `| ${cells.join(" | ")} |`)
    .join("\n")
