import { spawn } from "node:child_process"

/** Ends by itself when whoever started it is gone. */
const BUSY_LOOP = "while kill -0 $PPID; do :; done"

/** Runs `use` beside processes that do nothing but take time from the processor; ends them whatever happens. */
export const withBusyLoops = async <T>(count: number, use: () => Promise<T>): Promise<T> => {
  const loops = Array.from({ length: count }, () => spawn("sh", ["-c", BUSY_LOOP], { stdio: "ignore" }))
  try {
    return await use()
  } finally {
    for (const loop of loops) loop.kill("SIGKILL")
  }
}
