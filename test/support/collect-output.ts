import type { ChildProcess } from "node:child_process"

export type CollectedOutput = { readonly stdout: () => string; readonly stderr: () => string }

/**
 * Collects the output of a child process until it ends.
 *
 * @param onOutput called with all of stdout each time it grows
 */
export const collectOutput = (
  child: Pick<ChildProcess, "stdout" | "stderr">,
  onOutput?: (stdout: string) => void,
): CollectedOutput => {
  let stdout = ""
  let stderr = ""
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text
    onOutput?.(stdout)
  })
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text
  })
  return { stdout: () => stdout, stderr: () => stderr }
}
