import { OWED_KINDS, type StormResult } from "../../test/support/storm/run-storm.ts"

const line = (cells: readonly (string | number)[]): string => `| ${cells.join(" | ")} |`

/** A table of all faults that struck: in how many runs, on which end, and how many of these runs failed. */
export const renderSummary = (results: readonly StormResult[]): string => {
  const failed = results.filter(({ violations }) => violations.length > 0)
  const names = [...new Set(results.flatMap(({ struck }) => struck))].sort()
  const rows = names.map((name) => {
    const met = results.filter(({ struck }) => struck.includes(name))
    const onOldest = met.filter(({ plan }) => plan.end === "oldest").length
    const failures = met.filter(({ violations }) => violations.length > 0).length
    return line([name, met.length, onOldest, met.length - onOldest, failures])
  })
  const struck = results.reduce((sum, result) => sum + result.struck.length, 0)
  const seeds = failed.map(({ plan }) => plan.seed).sort((a, b) => a - b)
  const owed = OWED_KINDS.map((kind) => `${results.reduce((sum, result) => sum + result.owed[kind], 0)} ${kind}`)
  return [
    line(["Fault", "Runs", "oldest", "newest", "Failed"]),
    line(["---", "---:", "---:", "---:", "---:"]),
    ...rows,
    "",
    `Owed: ${owed.join(", ")}`,
    `${results.length} runs, ${struck} faults of ${names.length} kinds struck, ${failed.length} runs failed${seeds.length > 0 ? `: seeds ${seeds.join(", ")}` : ""}`,
  ].join("\n")
}
