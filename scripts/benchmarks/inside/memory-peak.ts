import { existsSync, readFileSync, writeFileSync } from "node:fs"

const STATUS = "/proc/self/status"
const CLEAR = "/proc/self/clear_refs"
/** Sets the highest resident memory back to the present one (proc(5)). */
const CLEAR_PEAK = "5"
const KIB_IN_MB = 1_000 / 1.024
/** Bun gives its free memory back when it has nothing to do. */
const SHRINK_MS = 300

const inMegabytes = (field: "VmRSS" | "VmHWM"): number => {
  const kibibytes = new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(readFileSync(STATUS, "utf8"))?.[1]
  if (kibibytes === undefined) throw new Error(`expected ${field} in ${STATUS}`)
  return Number(kibibytes) / KIB_IN_MB
}

/**
 * What is resident in this process, in MB, once its garbage is collected and the free memory given back: memory that
 * was kept for later use would hide what is taken next (15 MB of garbage showed as 0.4 MB).
 *
 * @throws on a system without Linux's /proc
 */
export const residentMemory = async (): Promise<number> => {
  if (!existsSync(CLEAR)) throw new Error(`memory is counted by Linux alone: expected ${CLEAR}`)
  Bun.gc(true)
  Bun.shrink()
  await new Promise((resolve) => setTimeout(resolve, SHRINK_MS))
  return inMegabytes("VmRSS")
}

/** By how much the resident memory of this process rises at its highest while `work` runs, garbage included, in MB. */
export const memoryPeak = async (work: () => Promise<unknown>): Promise<number> => {
  const before = await residentMemory()
  writeFileSync(CLEAR, CLEAR_PEAK)
  await work()
  return inMegabytes("VmHWM") - before
}
