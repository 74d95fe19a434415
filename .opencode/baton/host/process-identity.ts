import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { errorCode } from "./log.ts"

/** Tells whether a process with this id exists, of any user. */
export const isAlive = (pid: number): boolean => {
  if (!Number.isInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errorCode(error) !== "ESRCH"
  }
}

/**
 * The start time of a process, which together with its id names it for good: an id is used again.
 *
 * @returns undefined where it cannot be read; "ended" for a process that waits for its parent to notice its end
 */
export const startOfProcess = (pid: number): string | undefined => {
  try {
    if (process.platform === "linux") {
      // proc(5): the name of the program, in brackets, may hold anything.
      const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
        .replace(/^.*\) /s, "")
        .split(" ")
      return fields[0] === "Z" || fields[0] === "X" ? "ended" : fields[19]
    }
    const started = execFileSync("/bin/ps", ["-o", "lstart=", "-p", String(pid)], {
      encoding: "latin1",
      timeout: 1_000,
      stdio: ["ignore", "pipe", "ignore"],
      env: { LC_ALL: "C", TZ: "UTC" },
    })
    return started.trim() || undefined
  } catch {
    // No such process, or a system without either.
    return undefined
  }
}

let start: string | undefined
/** The start time of this process; "" where it cannot be known. */
export const ownStart = (): string => {
  start ??= startOfProcess(process.pid) ?? ""
  return start
}
