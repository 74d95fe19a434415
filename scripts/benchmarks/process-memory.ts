import { readdirSync, readFileSync } from "node:fs"

const KIB_IN_MB = 1_000 / 1.024

/** What stands in a file of /proc; a process that has ended meanwhile has none. */
const readProc = (pid: number | string, file: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8")
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined
    if (code === "ENOENT" || code === "ESRCH" || code === "EACCES") return ""
    throw error
  }
}

const kibibytes = (text: string, field: string): number =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(text)?.[1] ?? 0)

/**
 * What OpenCode and everything it has started keep in memory, in MB: the resident memory of OpenCode's own process, and of
 * each other process with the same HOME what it shares with nobody.
 *
 * @param home the project's own HOME, which no process beside the project has
 * @throws when the process is not there, or the system has no /proc as Linux does
 */
export const projectMemory = (pid: number, home: string): number => {
  const own = kibibytes(readProc(pid, "status"), "VmRSS")
  if (own === 0) throw new Error(`expected the resident memory of process ${pid} in /proc`)
  const others = readdirSync("/proc").filter(
    (name) =>
      /^\d+$/.test(name) && Number(name) !== pid && readProc(name, "environ").split("\0").includes(`HOME=${home}`),
  )
  const shares = others.map((name) => {
    const rollup = readProc(name, "smaps_rollup")
    return kibibytes(rollup, "Private_Clean") + kibibytes(rollup, "Private_Dirty")
  })
  return shares.reduce((sum, share) => sum + share, own) / KIB_IN_MB
}
