import { CONVERSATION_LABEL } from "../../labels.ts"
import { endClaimWithTask } from "../claims.ts"
import { type Command, refuse, withErrorPrefix } from "../command.ts"
import { DRAFT_IN_EPIC, readItem, requireItem, updateItem } from "../items.ts"
import type { ItemRow, LedgerStore } from "../store.ts"
import { addDependency, addLabel, ensureProject, removeLabel, setParent } from "./links.ts"

const DEFAULT_PRIORITY = 2

const init: Command = {
  name: "init",
  summary: "Create the database; add and learn do it as well when it is missing",
  run: (_invocation, context) =>
    context.create((store) => {
      const projects = store.all<{ project: string }>("SELECT DISTINCT project FROM items WHERE project != ''")
      for (const { project } of projects) ensureProject(store, project, context.timestamp())
      return [`Initialized prog database at ${store.location}`]
    }),
}

const add: Command = {
  name: "add",
  operands: "<title>",
  summary: "Create a task, or an epic with -e; prints its id",
  arguments: { least: 1 },
  usesFolderProject: true,
  flags: [
    { name: "epic", short: "e", kind: "switch", about: "create an epic" },
    { name: "draft", kind: "switch", about: "create it as a draft (later versions of prog have this)" },
    { name: "priority", kind: "integer", about: "1 high, 2 medium, 3 low", fallback: DEFAULT_PRIORITY },
    { name: "parent", kind: "text", about: "the epic it belongs to" },
    { name: "blocks", kind: "text", about: "the task that waits for it" },
    { name: "label", short: "l", kind: "list", about: "a label to attach; may be given again" },
    { name: "dod", kind: "text", about: "the definition of done" },
    { name: "desc", short: "d", kind: "text", about: "the description" },
  ],
  run: ({ args, flags }, context) => {
    const project = flags.text("project")
    if (project === "") throw refuse("project is required (-p)")
    const isEpic = flags.has("epic")
    const [parent, blocked] = [flags.text("parent"), flags.text("blocks")]
    if (flags.has("draft") && isEpic) throw refuse("an epic cannot be a draft: its status comes from its children")
    if (flags.has("draft") && parent !== "") throw refuse(DRAFT_IN_EPIC)
    return context.create((store) => {
      const [id, at] = [context.newId(isEpic ? "ep" : "ts"), context.timestamp()]
      ensureProject(store, project, at)
      const row: ItemRow = {
        id,
        project,
        type: isEpic ? "epic" : "task",
        title: args.join(" "),
        description: flags.text("desc"),
        definition_of_done: flags.text("dod") || null,
        status: flags.has("draft") ? "draft" : "open",
        priority: flags.integer("priority"),
        parent_id: null,
        created_at: at,
        updated_at: at,
      }
      store.insert("items", row)
      if (parent !== "") setParent(store, id, parent, context.timestamp())
      if (blocked !== "") addDependency(store, blocked, id)
      for (const name of flags.list("label")) addLabel(context, id, project, name)
      return [id]
    })
  },
}

const remove: Command = {
  name: "delete",
  operands: "<id>",
  summary: "Delete a task or epic for good, with its log and dependencies",
  arguments: { least: 1, most: 1 },
  run: ({ args: [id = ""] }, context) =>
    context.write((store) => {
      requireItem(store, id)
      store.run("DELETE FROM logs WHERE item_id = ?", id)
      store.run("DELETE FROM deps WHERE item_id = ? OR depends_on = ?", id, id)
      withErrorPrefix("failed to delete item", () => store.run("DELETE FROM items WHERE id = ?", id))
      return [`Deleted ${id}`]
    }),
}

const addLog = (store: LedgerStore, id: string, message: string): void => store.insert("logs", { item_id: id, message })

const log: Command = {
  name: "log",
  operands: "<id> <message>",
  summary: "Add a line with the time to a task's log",
  arguments: { least: 2 },
  run: ({ args: [id = "", ...words] }, context) =>
    context.write((store) => {
      requireItem(store, id)
      addLog(store, id, words.join(" "))
      return [`Logged to ${id}`]
    }),
}

const append: Command = {
  name: "append",
  operands: "<id> <text>",
  summary: "Add a paragraph to a task's description",
  arguments: { least: 2 },
  run: ({ args: [id = "", ...words] }, context) =>
    context.write((store) => {
      const description = `${requireItem(store, id).description ?? ""}\n\n${words.join(" ")}`
      updateItem(store, id, { description, updated_at: context.timestamp() })
      return [`Appended to ${id}`]
    }),
}

const desc: Command = {
  name: "desc",
  operands: "<id> <text>",
  summary: "Replace a task's description",
  arguments: { least: 2 },
  run: ({ args: [id = "", ...words] }, context) =>
    context.write((store) => {
      updateItem(store, id, { description: words.join(" "), updated_at: context.timestamp() })
      return [`Updated description for ${id}`]
    }),
}

const edit: Command = {
  name: "edit",
  operands: "<id>",
  summary: "Change a task's title (--title) or its definition of done (--dod)",
  arguments: { least: 1, most: 1 },
  flags: [
    { name: "title", kind: "text", about: "the new title" },
    { name: "dod", kind: "text", about: 'the definition of done; "" clears it' },
  ],
  run: ({ args: [id = ""], flags }, context) =>
    context.write((store) => {
      const [title, dod, updated_at] = [flags.text("title"), flags.text("dod"), context.timestamp()]
      if (flags.given("dod")) {
        updateItem(store, id, { definition_of_done: dod || null, updated_at })
        return [`${dod === "" ? "Cleared" : "Updated"} definition of done for ${id}`]
      }
      requireItem(store, id)
      if (title === "")
        throw refuse("the embedded ledger opens no editor: give --title or --dod, or use 'prog desc <id> <text>'")
      updateItem(store, id, { title, updated_at })
      return [`Updated title for ${id}`]
    }),
}

const setStatus = (store: LedgerStore, id: string, status: string, updated_at: string): void => {
  if (requireItem(store, id).type === "epic" && status !== "done" && status !== "canceled")
    throw refuse(
      "epic status is derived from children; only 'done' and 'canceled' can be set manually (to force-close)",
    )
  updateItem(store, id, { status, updated_at })
}

type StatusChange = Pick<Command, "name" | "summary"> & {
  readonly status: string
  readonly answer: (id: string) => readonly string[]
  /** @throws LedgerError for a task that may not have the status */
  readonly check?: (store: LedgerStore, id: string) => void
  /** Runs in the same transaction. */
  readonly also?: (store: LedgerStore, id: string) => void
}

const statusCommand = ({ name, summary, status, answer, check, also }: StatusChange): Command => ({
  name,
  operands: "<id>",
  summary,
  arguments: { least: 1, most: 1 },
  run: ({ args: [id = ""] }, context) =>
    context.write((store) => {
      check?.(store, id)
      setStatus(store, id, status, context.timestamp())
      also?.(store, id)
      return answer(id)
    }),
})

const start = statusCommand({
  name: "start",
  summary: "Begin work on a task",
  status: "in_progress",
  answer: (id) => [`Started ${id}`],
  // Somebody takes it up as a task.
  also: (store, id) => removeLabel(store, id, CONVERSATION_LABEL),
})

const REFLECTION = `
Reflect: What would help the next agent? (See instructions for guidance)
  prog learn "summary" -c concept --detail "explanation"`

const done = statusCommand({
  name: "done",
  summary: "Close a task as completed",
  status: "done",
  answer: (id) => [`Completed ${id}`, REFLECTION],
  also: endClaimWithTask,
})

const open = statusCommand({
  name: "open",
  summary: "Open a task again",
  status: "open",
  answer: (id) => [`Reopened ${id}`],
  also: endClaimWithTask,
})

const review = statusCommand({
  name: "review",
  summary: "Mark a task in progress as waiting for review or merge",
  status: "reviewing",
  check: (store, id) => {
    const { status } = readItem(store, id)
    if (status !== "in_progress") throw refuse(`can only review in_progress tasks (current status: ${status})`)
  },
  answer: (id) => [`Marked ${id} as reviewing`],
})

/** A draft stays outside epics: prog v0.17 fails on every list that shows an epic with a draft child. */
const draft = statusCommand({
  name: "draft",
  summary: "Mark a task as a draft, so that no worker takes it up (later versions of prog have this)",
  status: "draft",
  check: (store, id) => {
    if (requireItem(store, id).parent_id !== null) throw refuse(DRAFT_IN_EPIC)
  },
  answer: (id) => [`Marked ${id} as draft`],
})

const cancel: Command = {
  name: "cancel",
  operands: "<id> [reason]",
  summary: "Close a task that is not wanted any more; a reason goes to its log",
  arguments: { least: 1 },
  run: ({ args: [id = "", ...words] }, context) =>
    context.write((store) => {
      setStatus(store, id, "canceled", context.timestamp())
      endClaimWithTask(store, id)
      if (words.length === 0) return [`Canceled ${id}`]
      const reason = words.join(" ")
      addLog(store, id, `Canceled: ${reason}`)
      return [`Canceled ${id}: ${reason}`]
    }),
}

export const writeCommands: readonly Command[] = [
  ...[init, add, remove, log, append, desc, edit],
  ...[start, done, open, review, cancel, draft],
]
