import type { ChildProcess } from "node:child_process"

/** What a child process has printed so far. */
export type CollectedOutput = { readonly stdout: () => string; readonly stderr: () => string }

/** Collects what a child process prints, for as long as it does. @param onOutput called with all of stdout, as it grows */
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
