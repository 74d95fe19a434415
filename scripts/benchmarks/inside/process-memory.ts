import { readFileSync, writeFileSync } from "node:fs"

const KIB_IN_MB = 1_000 / 1.024
/** Bun returns its free memory when idle. */
const SHRINK_MS = 300

const megabytes = (field: "VmRSS" | "VmHWM", pid: number | "self"): number => {
  const status = readFileSync(`/proc/${pid}/status`, "utf8")
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) / KIB_IN_MB
}

/** A process's resident memory in MB. Linux only. */
export const residentMB = (pid: number | undefined): number => megabytes("VmRSS", pid ?? -1)

/**
 * Resident memory of this process after garbage collection and the return of free memory. Kept free memory would hide later
 * allocations (15 MB of garbage showed as 0.4 MB).
 */
export const residentMemory = async (): Promise<number> => {
  Bun.gc(true)
  Bun.shrink()
  await new Promise((resolve) => setTimeout(resolve, SHRINK_MS))
  return megabytes("VmRSS", "self")
}

/** Highest rise of this process's resident memory while `work` runs, garbage included, in MB. */
export const memoryPeak = async (work: () => Promise<unknown>): Promise<number> => {
  const before = await residentMemory()
  // Resets the highest resident memory to the present value (proc(5)).
  writeFileSync("/proc/self/clear_refs", "5")
  await work()
  return megabytes("VmHWM", "self") - before
}
