import { readdirSync, readFileSync } from "node:fs"
import { dirname } from "node:path"
import { snapshotTree } from "../files/folder-tree.ts"
import { readProcesses } from "../files/process-table.ts"
import { eventually } from "../opencode/opencode-server.ts"
import type { TestProject } from "../opencode/test-project.ts"

/** The environment tells even of a program whose arguments name nothing; elsewhere than on Linux it cannot be read. */
const environmentOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8")
  } catch {
    // The process has ended, or belongs to somebody else.
    return ""
  }
}

/** Processes that were started for this project and still run, by pid and arguments. */
export const findProcessesOf = async ({ directory }: TestProject): Promise<string[]> => {
  const root = dirname(directory)
  const processes = await readProcesses(process.platform)
  return processes
    .filter(({ pid, args }) => pid !== process.pid && `${args}\n${environmentOf(pid)}`.includes(root))
    .map(({ pid, args }) => `${pid} ${args.replaceAll("\0", " ")}`)
}

/** To look at every process of the machine takes a while. */
const LOOK_EVERY_MS = 400

/** Waits until every process that was started for this project has ended. @returns those that do not */
export const awaitNoProcesses = async (project: TestProject, deadlineMs = 90_000): Promise<string[]> => {
  const none = async () => ((await findProcessesOf(project)).length === 0 ? true : undefined)
  await eventually("the end of every process", none, deadlineMs, LOOK_EVERY_MS).catch(() => undefined)
  return await findProcessesOf(project)
}

/** What lies beside project and home, and the project's own files without what the bundle may write. */
export const snapshotOutside = ({ directory }: TestProject): { beside: string[]; project: Record<string, string> } => {
  const files = Object.entries(snapshotTree(directory)).filter(
    ([path]) => !/^(\.git|\.opencode\/state)(\/|$)/.test(path),
  )
  return { beside: readdirSync(dirname(directory)).sort(), project: Object.fromEntries(files) }
}
