import { atLeast, type Command, type CommandContext, exactly, itemNotFound, lines, refuse, step } from "../command.ts"
import { withDerivedStatus } from "../status-rules.ts"
import type { ItemRow } from "../store.ts"

const requireItem = (context: CommandContext, id: string): ItemRow => {
  const item = step("failed to get item", () => context.store().items.find(id))
  if (item === undefined) throw itemNotFound(id)
  return item
}

const setStatus = (context: CommandContext, id: string, status: string): void => {
  const { items } = context.store()
  const item = requireItem(context, id)
  if (item.type === "epic" && status !== "done" && status !== "canceled") {
    throw refuse(
      "epic status is derived from children; only 'done' and 'canceled' can be set manually (to force-close)",
    )
  }
  step("failed to update status", () => items.update(id, { status, updatedAt: context.timestamp() }))
}

const REFLECTION = `
Reflect: What would help the next agent? (See instructions for guidance)
  prog learn "summary" -c concept --detail "explanation"`

/** A command that sets one status and says so. */
const statusCommand = (name: string, status: string, summary: string, answer: (id: string) => string[]): Command => ({
  name,
  operands: "<id>",
  summary,
  arguments: exactly(1),
  flags: [],
  run: ({ args: [id = ""] }, context) =>
    context.store().write(() => {
      setStatus(context, id, status)
      return lines(answer(id))
    }),
})

const start = statusCommand("start", "in_progress", "Begin work on a task", (id) => [`Started ${id}`])
const done = statusCommand("done", "done", "Close a task as completed", (id) => [`Completed ${id}`, REFLECTION])
const open = statusCommand("open", "open", "Open a task again", (id) => [`Reopened ${id}`])

const review: Command = {
  name: "review",
  operands: "<id>",
  summary: "Mark a task in progress as waiting for review or merge",
  arguments: exactly(1),
  flags: [],
  run: ({ args: [id = ""] }, context) =>
    context.store().write(() => {
      const item = requireItem(context, id)
      const { status } = withDerivedStatus(item, context.store().items.childStatuses(id))
      if (status !== "in_progress") throw refuse(`can only review in_progress tasks (current status: ${status})`)
      setStatus(context, id, "reviewing")
      return lines([`Marked ${id} as reviewing`])
    }),
}

const cancel: Command = {
  name: "cancel",
  operands: "<id> [reason]",
  summary: "Close a task that is not wanted any more; a reason goes to its log",
  arguments: atLeast(1),
  flags: [],
  run: ({ args: [id = "", ...words] }, context) =>
    context.store().write(() => {
      const reason = words.join(" ")
      setStatus(context, id, "canceled")
      if (words.length === 0) return lines([`Canceled ${id}`])
      step("failed to add log", () => context.store().logs.add(id, `Canceled: ${reason}`))
      return lines([`Canceled ${id}: ${reason}`])
    }),
}

/** prog v0.17 fails on every list that shows an epic with a draft child, so a draft stays outside epics. */
export const DRAFT_IN_EPIC = "a draft cannot belong to an epic: prog v0.17 cannot read an epic with a draft child"

const draft: Command = {
  name: "draft",
  operands: "<id>",
  summary: "Mark a task as a draft, so that nobody takes it up (later versions of prog have this)",
  arguments: exactly(1),
  flags: [],
  run: ({ args: [id = ""] }, context) =>
    context.store().write(() => {
      if (requireItem(context, id).parentId !== null) throw refuse(DRAFT_IN_EPIC)
      setStatus(context, id, "draft")
      return lines([`Marked ${id} as draft`])
    }),
}

export const statusChangeCommands: readonly Command[] = [start, done, open, review, cancel, draft]
