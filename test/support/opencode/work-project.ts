import { join } from "node:path"
import type { Script } from "../model/scripted-model.ts"
import { newestOrder } from "../model/scripted-model.ts"
import { type OpenCodeBinary, REPOSITORY } from "./opencode-binary.ts"
import { type RunResult, runProgram } from "./opencode-run.ts"
import { openTaskProject, type TaskProject } from "./task-project.ts"
import type { ProjectOptions } from "./test-project.ts"

export const BATON = join(REPOSITORY, ".opencode", "baton", "bin", "baton")

export type WorkEvent = {
  event: string
  task?: string
  kind?: string
  status?: string
  detail?: string
  text?: string
  state?: string
  reason?: string
  run?: number
  n?: number
  isResumed?: boolean
  outcome?: string
}

/** The task's id in an agent's newest order. */
export const taskOf = (request: { conversation: string }): string =>
  /Task: (ts-[0-9a-f]+)/.exec(newestOrder(request))?.[1] ?? ""

/** Number of steps that the agent has made since its newest order. */
export const stepOf = (request: { conversation: string }): number => newestOrder(request).split("[tool]").length - 1

/** True for the question that `baton work` asks before it takes a task. */
export const isProbe = (request: { conversation: string }): boolean => request.conversation.includes("Are you there?")

/** An agent that answers the first question, and works as given. */
export const answering =
  (script: Script): Script =>
  (request) =>
    isProbe(request) ? { text: "Yes." } : script(request)

/** A project of which the task that every task project has is canceled; `work` runs `baton work --json`. */
export const openWorkProject = async (
  binary: OpenCodeBinary,
  script: Script,
  options: Partial<ProjectOptions> = {},
  probe: "answered" | "scripted" = "answered",
) => {
  const task: TaskProject = await openTaskProject(binary, probe === "answered" ? answering(script) : script, options)
  await task.ledger.prog("cancel", task.taskID)
  const environment = { BATON_OPENCODE: binary.path }
  const baton = (args: readonly string[], more: Partial<Parameters<typeof runProgram>[1]> = {}): Promise<RunResult> =>
    runProgram([BATON, ...args], {
      project: task.project,
      deadlineMs: 180_000,
      ...more,
      environment: { ...environment, ...more.environment },
    })
  const add = (title: string, ...flags: string[]): Promise<string> =>
    task.ledger.prog("add", title, "-p", "demo", ...flags)
  return {
    ...task,
    add,
    baton,
    /** @returns the exit code, the events and what was said of what is wrong */
    work: async (args: readonly string[] = [], more: Parameters<typeof baton>[1] = {}) => {
      const result = await baton(["work", "-p", "demo", "--json", "--backoff", "0s", ...args], more)
      const events = result.stdout.split("\n").filter((line) => line.startsWith("{"))
      return {
        exitCode: result.exitCode,
        stderr: result.stderr,
        events: events.map((line) => JSON.parse(line) as WorkEvent),
      }
    },
    statusOf: async (id: string): Promise<string> => (await task.ledger.show(id)).status,
    ends: async (id: string): Promise<string[]> =>
      (await task.ledger.messages(id)).filter((message) => message.startsWith("Run ")),
  }
}

export type WorkProject = Awaited<ReturnType<typeof openWorkProject>>
