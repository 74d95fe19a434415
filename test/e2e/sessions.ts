import { readFileSync, renameSync } from "node:fs"
import { join } from "node:path"
import { expect } from "vitest"
import { recordsIn } from "../support/faults/fault-stored-table.ts"
import {
  COMPACTING_STEP,
  eventually,
  isCompacted,
  type ModelReply,
  newestOrder,
  type RunResult,
  type Script,
  type SharedTask,
  type TaskProject,
} from "../support/index.ts"
import { handedOverTo } from "../support/model/handoff-script.ts"
import { liveFiles, liveFolder } from "../support/opencode/live-stream.ts"
import { compact, createSession } from "../support/opencode/model-project.ts"

export { compact, createSession }

/** An agent that is compacted after each of its first `times` steps, and then stops. */
export const compactsAfterSteps = (
  times: number,
  summarise: (index: number) => ModelReply = () => ({ text: "A summary." }),
): Script => {
  let step = 0
  return ({ kind, index }) => {
    if (kind === "compaction") return summarise(index)
    return step++ < times ? COMPACTING_STEP : { text: "Finished." }
  }
}

/** An agent that is compacted when the newest message says COMPACT-NOW, and says a word otherwise. */
export const compactsOnDemand: Script = (request) => {
  if (request.kind === "compaction") return { text: `Summary ${request.index + 1}.` }
  const words = newestOrder(request)
  return words.includes("COMPACT-NOW") && !words.includes("[tool]") ? COMPACTING_STEP : { text: "Noted." }
}

/** An agent that is compacted once in each session. */
export const compactsOnce: Script = (request) => {
  if (request.kind === "compaction") return { text: "A summary." }
  return isCompacted(request) ? { text: "Finished." } : COMPACTING_STEP
}

/** Waits, while OpenCode runs, until the records so far are delivered. */
export const untilDelivered = (task: Pick<TaskProject, "project">): Promise<true> =>
  eventually("an empty outbox", () => recordsIn(task, "outbox").length === 0 || undefined)

/** Each answer comes once the records so far are delivered: a busy machine, and 1.2.15, end a run before they are. */
export const afterDelivery =
  (task: () => Pick<TaskProject, "project">, script: Script): Script =>
  async (request) => {
    await untilDelivered(task())
    return script(request)
  }

type Asked = Pick<TaskProject, "model">

/** Conversations of the requests for an agent's step, oldest first. */
export const turnsOf = ({ model }: Asked): string[] => model.received("turn").map(({ conversation }) => conversation)

export const lastTurn = (task: Asked): string => turnsOf(task).at(-1) ?? ""

/** Conversations of the requests for a summary, oldest first. */
export const compactionsOf = ({ model }: Asked): string[] =>
  model.received("compaction").map(({ conversation }) => conversation)

/** Messages of the log of the project's task as it is now, each without its session. */
export const recordsOf = ({ ledger, taskID }: Pick<TaskProject, "ledger" | "taskID">): Promise<string[]> =>
  ledger.messages(taskID)

/** `opencode run`, which must succeed. */
export const runWell = async (task: TaskProject, ...args: Parameters<TaskProject["run"]>): Promise<RunResult> => {
  const result = await task.run(...args)
  expect(result.exitCode, result.stderr).toBe(0)
  return result
}

export const forkSession = async ({ client }: Pick<SharedTask, "client">, id: string): Promise<string> =>
  (await client.session.fork({ path: { id }, body: {} })).data?.id ?? ""

export const messagesOf = async ({ client }: Pick<SharedTask, "client">, id: string) =>
  (await client.session.messages({ path: { id } })).data ?? []

/** Sends the command /handoff to a session. @returns the new session */
export const handOver = async (task: Pick<SharedTask, "client" | "model">, id: string, goal = ""): Promise<string> => {
  await task.client.session.command({ path: { id }, body: { command: "handoff", arguments: goal } })
  return handedOverTo(task)
}

/** The state in the folder's one statefile, besides that of a process that crashed; undefined until there is one. */
export const liveState = (directory: string) => {
  const name = liveFiles(directory).find((each) => !each.endsWith("-crashed.json"))
  return name === undefined ? undefined : JSON.parse(readFileSync(join(liveFolder(directory), name), "utf8")).state
}

/** Does something in a project in which OpenCode finds no plugin. */
export const withoutPlugins = async <T>({ project }: Pick<TaskProject, "project">, act: () => Promise<T>) => {
  const plugins = join(project.directory, ".opencode", "plugins")
  renameSync(plugins, `${plugins}-off`)
  const result = await act()
  renameSync(`${plugins}-off`, plugins)
  return result
}

/** Expects that the text holds these parts in this order. */
export const expectInOrder = (text: string, parts: readonly string[]): void => {
  let from = 0
  for (const part of parts) {
    const at = text.indexOf(part, from)
    expect(at, `'${part}' behind character ${from} of:\n${text}`).toBeGreaterThanOrEqual(0)
    from = at + part.length
  }
}

/** Calls for each event of the project's instance from now on, until the instance ends. */
export const onEvents = async (
  { client }: Pick<SharedTask, "client">,
  act: (type: string, properties: Readonly<Record<string, unknown>>) => unknown,
): Promise<void> => {
  const { stream } = await client.event.subscribe({ sseMaxRetryAttempts: 1 })
  // The first event says that OpenCode listens: what happens before it is lost.
  await stream.next()
  void (async () => {
    for await (const event of stream) {
      const { type, properties }: { type: string; properties: Record<string, unknown> } = Object(event)
      await act(type, properties)
    }
  })()
}

/** The toasts that OpenCode is asked to show from now on. */
export const collectToasts = async (task: Pick<SharedTask, "client">): Promise<string[]> => {
  const toasts: string[] = []
  await onEvents(task, (type, { title, message }) => {
    if (type === "tui.toast.show") toasts.push(`${String(title)}: ${String(message)}`)
  })
  return toasts
}
