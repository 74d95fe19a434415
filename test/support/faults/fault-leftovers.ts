import { readFileSync } from "node:fs"
import { dirname } from "node:path"
import { readProcesses } from "../files/process-table.ts"
import { eventually } from "../opencode/opencode-server.ts"
import type { TestProject } from "../opencode/test-project.ts"

/** Needed for programs whose arguments do not name the project. Only Linux lets it be read. */
const environmentOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8")
  } catch {
    // The process has ended or belongs to another user.
    return ""
  }
}

/** Finds running processes that were started for this project, by pid and arguments. */
export const findProcessesOf = async ({ directory }: TestProject): Promise<string[]> => {
  const root = dirname(directory)
  const processes = await readProcesses(process.platform)
  return processes
    .filter(({ pid, args }) => pid !== process.pid && `${args}\n${environmentOf(pid)}`.includes(root))
    .map(({ pid, args }) => `${pid} ${args.replaceAll("\0", " ")}`)
}

/** Listing every process of the machine takes a while. */
const LOOK_EVERY_MS = 400

/**
 * Waits until all processes that were started for this project have ended.
 *
 * @returns those still running at the deadline
 */
export const awaitNoProcesses = async (project: TestProject, deadlineMs = 90_000): Promise<string[]> => {
  const none = async () => ((await findProcessesOf(project)).length === 0 ? true : undefined)
  await eventually("the end of every process", none, deadlineMs, LOOK_EVERY_MS).catch(() => undefined)
  return await findProcessesOf(project)
}
