import { join } from "node:path"
import type { AgentRun } from "./agent-run.ts"
import type { DemoOptions } from "./options.ts"
import type { Paint } from "./paint.ts"
import { CONSTRAINT, TASK } from "./slug-project.ts"
import type { Workspace } from "./workspace.ts"

/** A numbered heading with a remark. */
export const renderHeading = (number: number, title: string, remark: string, paint: Paint): string =>
  `${paint.cyan(String(number))}  ${paint.bold(title)}${remark === "" ? "" : `  ${paint.dim(remark)}`}`

/** A heading below a heading: the command that shows what follows. */
export const renderCommand = (command: string, remark: string, paint: Paint): string =>
  `   ${paint.cyan("$")} ${command}  ${paint.dim(remark)}`

/** What is shown, and what in it is real. */
export const renderHeader = (options: DemoOptions, version: string, paint: Paint): string[] => {
  const bundle = options.withBaton ? "the Baton plugin, " : ""
  const title = options.withBaton
    ? "Baton demo: a task survives compaction"
    : "Baton demo WITHOUT Baton: what plain OpenCode loses"
  const real = `${paint.green("real     ")}  OpenCode ${version}, ${bundle}the ledger, the files, the test`
  return options.model
    ? [paint.bold(title), `${real}, the model ${options.model}`]
    : [
        paint.bold(title),
        real,
        `${paint.yellow("scripted ")}  the model: it remembers nothing, and computes each answer from the request alone`,
      ]
}

export const renderTask = (taskID: string, { withBaton }: DemoOptions, paint: Paint): string[] => {
  const row = (name: string, text: string) => `   ${paint.dim(name.padEnd(11))}${text}`
  return [
    row("task", `${paint.bold(taskID)}  ${TASK.title}`),
    row("done when", TASK.definitionOfDone),
    row("message", `Task: ${taskID} ⏎ ${CONSTRAINT}${withBaton ? "" : paint.dim(" ⏎ and all of the task, pasted")}`),
  ]
}

export const renderCrash = (taskID: string, paint: Paint): string[] => [
  `   ${paint.red("✗ kill -9")}  ${paint.dim("in the middle of the work; then, with nothing else:")} opencode run "Task: ${taskID}"`,
]

export const renderAgentEnd = (run: AgentRun, paint: Paint): string[] => [
  `   ${paint.dim(`the agent, after ${run.seconds.toFixed(1)} s:`)} ${run.lastText.replace(/\s+/g, " ").slice(0, 76)}`,
  ...(run.error === "" ? [] : [`   ${paint.red(run.error.replace(/\s+/g, " "))}`]),
]

export type DemoEnd = {
  options: DemoOptions
  workspace: Workspace
  taskID: string
  passed: boolean
  /** Whether the session was taken out of the user's list; undefined when there was none to take out. */
  isForgotten: boolean | undefined
}

const keptText = ({ options, workspace, taskID }: DemoEnd): string[] => {
  const prog = join(options.repository, ".opencode", "baton", "bin", "prog")
  const settings = `BATON_LEDGER=embedded PROG_DB='${workspace.isolated.PROG_DB}' BATON_RUNTIME='${options.runtime}'`
  return [`Kept in ${workspace.root}; look again with:`, `  ${settings} '${prog}' show ${taskID}`]
}

/** How it ended and what is left. */
export const renderEnd = (end: DemoEnd, paint: Paint): string[] => {
  const { options, passed, isForgotten = false } = end
  const failed = options.withBaton
    ? "A claim does not hold: see ✗ above."
    : "That is what plain OpenCode loses. The same with Baton: ./scripts/demo"
  const held = options.model ? "What Baton promises holds; what is marked · was up to the model." : "Every claim holds."
  const session = isForgotten
    ? "its session is out of your list again"
    : 'its session "Baton demo" is still in your list'
  return [
    passed ? paint.bold(paint.green(held)) : paint.bold(paint.red(failed)),
    ...(options.model ? [`Your OpenCode keeps its own log of this run; ${session}.`] : []),
    ...(options.keep ? keptText(end) : []),
  ]
}
