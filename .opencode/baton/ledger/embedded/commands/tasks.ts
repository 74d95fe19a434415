import { anyArguments, atLeast, type Command, exactly, itemNotFound, lines, refuse, step } from "../command.ts"
import { DRAFT_IN_EPIC } from "./status-changes.ts"
import { addDependency, addLabel, setParent } from "./task-links.ts"

const DEFAULT_PRIORITY = 2

const init: Command = {
  name: "init",
  operands: "",
  summary: "Create the database; other commands do it as well when it is missing",
  arguments: anyArguments,
  flags: [],
  run: (_invocation, context) => {
    const store = context.store()
    store.write(() => {
      const names = new Set(store.items.all().map((item) => item.project))
      for (const name of names) if (name !== "") store.projects.ensure(name, context.timestamp())
    })
    return lines([`Initialized prog database at ${store.location}`])
  },
}

const add: Command = {
  name: "add",
  operands: "<title>",
  summary: "Create a task, or an epic with -e; prints its id",
  arguments: atLeast(1),
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
    const [parent, blocked, dod] = [flags.text("parent"), flags.text("blocks"), flags.text("dod")]
    if (flags.has("draft") && isEpic) throw refuse("an epic cannot be a draft: its status comes from its children")
    if (flags.has("draft") && parent !== "") throw refuse(DRAFT_IN_EPIC)
    return context.store().write(() => {
      const { items, projects } = context.store()
      const [id, at] = [context.newId(isEpic ? "ep" : "ts"), context.timestamp()]
      step("failed to ensure project", () => projects.ensure(project, at))
      const row = {
        id,
        project,
        type: isEpic ? "epic" : "task",
        title: args.join(" "),
        description: flags.text("desc"),
        definitionOfDone: dod === "" ? null : dod,
        status: flags.has("draft") ? "draft" : "open",
        priority: flags.integer("priority"),
        parentId: null,
        createdAt: at,
        updatedAt: at,
      }
      step("failed to create item", () => items.insert(row))
      if (parent !== "") setParent(context, id, parent)
      if (blocked !== "") addDependency(context, blocked, id)
      for (const name of flags.list("label")) addLabel(context, id, project, name)
      return lines([id])
    })
  },
}

const remove: Command = {
  name: "delete",
  operands: "<id>",
  summary: "Delete a task or epic for good, with its log and dependencies",
  arguments: exactly(1),
  flags: [],
  run: ({ args: [id = ""] }, context) =>
    context.store().write(() => {
      const { items, dependencies, logs } = context.store()
      if (step("failed to check item", () => items.find(id)) === undefined) throw itemNotFound(id)
      step("failed to delete logs", () => logs.removeOf(id))
      step("failed to delete dependencies", () => dependencies.removeOf(id))
      step("failed to delete item", () => items.remove(id))
      return lines([`Deleted ${id}`])
    }),
}

export const taskCommands: readonly Command[] = [init, add, remove]
