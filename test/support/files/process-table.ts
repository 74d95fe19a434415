import { execFile } from "node:child_process"
import { readdir, readFile } from "node:fs/promises"

type RunningProcess = { readonly pid: number; readonly parent: number; readonly args: string }

const LIST_DEADLINE_MS = 2000

const readLinuxProcess = async (pid: string): Promise<RunningProcess | undefined> => {
  try {
    const [status, args] = await Promise.all([
      readFile(`/proc/${pid}/stat`, "utf8"),
      readFile(`/proc/${pid}/cmdline`, "utf8"),
    ])
    // The name in parentheses may itself hold spaces and parentheses; the parent is the second field after it.
    const parent = Number(status.slice(status.lastIndexOf(")") + 1).split(" ")[2])
    return { pid: Number(pid), parent, args }
  } catch {
    // The process ended between the listing and the read, or belongs to another user.
    return undefined
  }
}

const readLinuxProcesses = async (): Promise<RunningProcess[]> => {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name))
  const processes = await Promise.all(pids.map(readLinuxProcess))
  return processes.filter((process) => process !== undefined)
}

/** Rows of `ps -o pid= -o ppid= -o args=`. */
export const parseProcessRows = (rows: string): RunningProcess[] =>
  rows.split("\n").flatMap((row) => {
    const [, pid, parent, args] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(row) ?? []
    return pid && parent ? [{ pid: Number(pid), parent: Number(parent), args: args ?? "" }] : []
  })

const readPosixProcesses = (): Promise<RunningProcess[]> =>
  new Promise((resolve, reject) => {
    const args = ["-A", "-ww", "-o", "pid=", "-o", "ppid=", "-o", "args="]
    execFile("ps", args, { timeout: LIST_DEADLINE_MS, maxBuffer: 32 * 1024 * 1024 }, (error, stdout) => {
      if (error) reject(error)
      else resolve(parseProcessRows(stdout))
    })
  })

/** Every process that this user can see. @throws errors of reading /proc or of running `ps` */
export const readProcesses = (platform: NodeJS.Platform): Promise<RunningProcess[]> =>
  platform === "linux" ? readLinuxProcesses() : readPosixProcesses()
