import { existsSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import { findExecutables, isExecutableFile } from "../host/process.ts"
import { openPromptFiles } from "../task/prompts.ts"

/** The message of a project without prompts/worker.md. */
const PLAIN = "Task: {{task_id}}"

/** The role prompt of workers, read anew for each agent, so that an edit counts for the next one. */
export const readWorkerPrompt = (project: string): string => {
  const file = openPromptFiles(project).read("worker")
  return file.kind === "text" ? file.text : PLAIN
}

/** The OpenCode that runs agents: BATON_OPENCODE, PATH, or its own installer's place. @throws Error when there is none */
export const findOpenCode = (environment: NodeJS.ProcessEnv = process.env): string => {
  const named = environment.BATON_OPENCODE ?? ""
  if (named !== "" && isExecutableFile(named)) return named
  const [found] = findExecutables("opencode", environment.PATH)
  const installed = join(environment.HOME || homedir(), ".opencode", "bin", "opencode")
  if (found !== undefined || existsSync(installed)) return found ?? installed
  throw new Error("opencode is not on PATH; name its binary in BATON_OPENCODE")
}
