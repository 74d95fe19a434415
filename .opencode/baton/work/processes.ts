import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"

/*
 * An agent's shells outlive it: OpenCode 1 starts them in sessions of their own and leaves them when it is killed. A variable in the
 * environment marks all that an agent starts.
 */

/** `BATON_RUN=ts-b54507.3`: the task and the number of its run. */
export const RUN_MARK = "BATON_RUN"
/** The id of the `baton work` that started it. */
export const WORKER_MARK = "BATON_WORK"

/** Reads the processes of this account by what their environment had at their start. */
const environments = (): (readonly [pid: number, variables: readonly string[]])[] => {
  if (process.platform === "linux")
    return readdirSync("/proc").flatMap((name) => {
      if (!/^\d+$/.test(name)) return []
      try {
        return [[Number(name), readFileSync(`/proc/${name}/environ`, "latin1").split("\0")] as const]
      } catch {
        // It has ended, or is another account's.
        return []
      }
    })
  // On macOS ps shows the environment behind the command.
  const listed = execFileSync("/bin/ps", ["-E", "-ww", "-x", "-o", "pid=,command="], { encoding: "latin1" })
  return listed.split("\n").map((line) => {
    const [pid = "", ...words] = line.trim().split(" ")
    return [Number(pid), words] as const
  })
}

/** The processes with this variable, without this one. */
export const findMarked = (mark: string, value: string): number[] =>
  environments().flatMap(([pid, variables]) =>
    pid !== process.pid && variables.includes(`${mark}=${value}`) ? [pid] : [],
  )

/** True while an agent or a check of this task runs on this machine. */
export const isTaskAtWork = (task: string): boolean =>
  environments().some(([, variables]) =>
    variables.some((each) => each.startsWith(`${RUN_MARK}=${task}.`) || each.startsWith(`${RUN_MARK}=check.${task}.`)),
  )

const signal = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended meanwhile.
  }
}

const GRACE_MS = 3_000
const LOOK_MS = 100

/** Ends all marked processes: asked first, then killed. They are gone when it resolves. @returns how many there were */
export const endMarked = async (mark: string, value: string, graceMs = GRACE_MS): Promise<number> => {
  const found = findMarked(mark, value)
  for (const pid of found) signal(pid, "SIGTERM")
  const gone = async (mostMs: number): Promise<void> => {
    for (let waited = 0; waited < mostMs && findMarked(mark, value).length > 0; waited += LOOK_MS) await pause(LOOK_MS)
  }
  await gone(graceMs)
  for (const pid of findMarked(mark, value)) signal(pid, "SIGKILL")
  // On a busy machine a killed process lives on for a while.
  await gone(GRACE_MS)
  return found.length
}
