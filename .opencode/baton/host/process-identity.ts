import { errorCode } from "./log.ts"

/*
 * A process is known by its host, its id and its start: an id is used again. The system's modules are loaded at their first use,
 * since the embedded ledger loads this file with most commands and seldom asks.
 */

/** The host with its pid namespace: containers share folders and databases, not process ids. */
export const readHost = (): string => {
  const name = process.getBuiltinModule("node:os").hostname()
  try {
    return `${name} ${process.getBuiltinModule("node:fs").readlinkSync("/proc/self/ns/pid")}`
  } catch {
    // Only Linux has process namespaces.
    return name
  }
}

/** True for a process of any user, and for another one with the same id. */
export const isAlive = (pid: number): boolean => {
  if (!Number.isInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errorCode(error) !== "ESRCH"
  }
}

/** @returns "" where it cannot be read; "ended" for a process that waits for its parent to notice its end */
export const startOfProcess = (pid: number): string => {
  try {
    if (process.platform === "linux") {
      // proc(5): the name of the program, in brackets, may hold anything.
      const fields = process
        .getBuiltinModule("node:fs")
        .readFileSync(`/proc/${pid}/stat`, "latin1")
        .replace(/^.*\) /s, "")
        .split(" ")
      return fields[0] === "Z" || fields[0] === "X" ? "ended" : (fields[19] ?? "")
    }
    const { execFileSync } = process.getBuiltinModule("node:child_process")
    const started = execFileSync("/bin/ps", ["-o", "lstart=", "-p", String(pid)], {
      encoding: "latin1",
      timeout: 1_000,
      stdio: ["ignore", "pipe", "ignore"],
      env: { LC_ALL: "C", TZ: "UTC" },
    })
    return started.trim()
  } catch {
    // No such process, or a system without either.
    return ""
  }
}

let start: string | undefined
export const ownStart = (): string => {
  start ??= startOfProcess(process.pid)
  return start
}

/**
 * @param startedAt its start as it was once read; "" where it was unknown
 * @returns undefined where a process of this host has the id, and cannot be told from another one
 */
export const hasEnded = (pid: number, startedAt: string): boolean | undefined => {
  if (!isAlive(pid)) return true
  const found = startedAt === "" ? "" : startOfProcess(pid)
  return found === "" ? undefined : found !== startedAt
}

/** The command line of a process; empty where it cannot be read. */
export const argumentsOf = (pid: number): string[] => {
  try {
    return process
      .getBuiltinModule("node:fs")
      .readFileSync(`/proc/${pid}/cmdline`, "utf8")
      .split("\0")
      .filter((argument) => argument !== "")
  } catch {
    // No such process, or a system without that folder.
    return []
  }
}
