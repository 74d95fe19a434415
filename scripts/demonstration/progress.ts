import type { AgentEvent } from "./agent-events.ts"
import type { Paint } from "./paint.ts"

export const WIDTH = 100
const INDENT = "   "

export type Progress = {
  show(event: AgentEvent): void
  /** Ends the open line. */
  end(): void
}

/**
 * Shows an agent's steps as they come: one flowing line between two compactions, wrapped at the width.
 *
 * @param describe what to say of compaction N, from 1
 */
export const createProgress = (
  write: (text: string) => void,
  paint: Paint,
  describe: (number: number) => string,
): Progress => {
  let column = 0
  let compactions = 0
  const end = (): void => {
    if (column > 0) write("\n")
    column = 0
  }
  return {
    end,
    show: (event) => {
      if (event.kind === "compacted") {
        end()
        compactions++
        const remark = describe(compactions)
        write(`${INDENT}${paint.yellow(`▼ compaction ${compactions}`)}${remark && `  ${paint.dim(remark)}`}\n`)
        return
      }
      if (event.kind !== "tool") return
      const { label } = event
      if (column > 0 && column + label.length + 3 > WIDTH) {
        write(paint.dim(" ·"))
        end()
      }
      const separator = column === 0 ? INDENT : " · "
      const isBad = label.includes("✗")
      const isGood = label.includes("✓")
      write(`${paint.dim(separator)}${isBad ? paint.red(label) : isGood ? paint.green(label) : label}`)
      column += separator.length + label.length
    },
  }
}
