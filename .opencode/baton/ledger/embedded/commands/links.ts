import {
  anyArguments,
  type Command,
  type CommandContext,
  exactly,
  type Invocation,
  itemNotFound,
  lines,
  refuse,
  withErrorPrefix,
} from "../command.ts"
import { goQuote, padRight, parseTimestamp, timeAgo } from "../format.ts"
import { DRAFT_IN_EPIC } from "../items.ts"
import type { LabelRow } from "../store.ts"

/** Moves an item under an epic. Called inside a write. */
export const setParent = (context: CommandContext, id: string, parentId: string): void => {
  const { items } = context.store()
  const parent = withErrorPrefix("failed to set parent", () => items.find(parentId))
  if (parent === undefined) throw refuse(`parent not found: ${parentId} (use 'prog list' to see available items)`)
  if (parent.type !== "epic") throw refuse(`parent must be an epic, got ${parent.type}`)
  const item = withErrorPrefix("failed to set parent", () => items.find(id))
  if (item === undefined) throw itemNotFound(id)
  if (item.status === "draft") throw refuse(DRAFT_IN_EPIC)
  withErrorPrefix("failed to set parent", () => items.update(id, { parentId, updatedAt: context.timestamp() }))
}

/** Makes one item depend on another. Called inside a write. */
export const addDependency = (context: CommandContext, itemId: string, dependsOn: string): void => {
  const { items, dependencies } = context.store()
  const known = withErrorPrefix(
    "failed to verify items",
    () => new Set([itemId, dependsOn].filter((id) => items.find(id))),
  )
  if (known.size !== 2) {
    throw refuse(`one or both items not found: ${itemId}, ${dependsOn} (use 'prog list' to see available items)`)
  }
  withErrorPrefix("failed to add dependency", () => dependencies.add({ itemId, dependsOn }))
}

/** Attaches a label, and creates it in the item's project if it is new. Called inside a write. */
export const addLabel = (context: CommandContext, itemId: string, project: string, name: string): void => {
  const { labels } = context.store()
  const known = labels.of(project).find((label) => label.name === name)
  const id = known?.id ?? context.newId("lbl")
  if (known === undefined) {
    const at = context.timestamp()
    const row = { id, name, project, color: "", createdAt: at, updatedAt: at }
    withErrorPrefix("failed to ensure label: failed to create label", () => labels.insert(row))
  }
  withErrorPrefix("failed to add label to item", () => labels.attach(itemId, id))
}

const parent: Command = {
  name: "parent",
  operands: "<id> <epic-id>",
  summary: "Put a task under an epic",
  arguments: exactly(2),
  flags: [],
  run: ({ args: [id = "", epic = ""] }, context) =>
    context.store().write(() => {
      setParent(context, id, epic)
      return lines([`${id} is now under ${epic}`])
    }),
}

const blocks: Command = {
  name: "blocks",
  operands: "<id> <other-id>",
  summary: "Make the second task wait for the first",
  arguments: exactly(2),
  flags: [],
  run: ({ args: [id = "", other = ""] }, context) =>
    context.store().write(() => {
      addDependency(context, other, id)
      return lines([`${id} now blocks ${other}`])
    }),
}

const project: Command = {
  name: "project",
  operands: "<id> <project>",
  summary: "Move a task to a project",
  arguments: exactly(2),
  flags: [],
  run: ({ args: [id = "", name = ""] }, context) =>
    context.store().write(() => {
      const updatedAt = context.timestamp()
      if (name !== "")
        withErrorPrefix("failed to ensure project", () => context.store().projects.ensure(name, updatedAt))
      const found = withErrorPrefix("failed to set project", () =>
        context.store().items.update(id, { project: name, updatedAt }),
      )
      if (!found) throw itemNotFound(id)
      return lines([`${id} is now in project ${name}`])
    }),
}

const label: Command = {
  name: "label",
  operands: "<item-id> <label-name>",
  summary: "Attach a label to a task or epic",
  arguments: exactly(2),
  flags: [],
  run: ({ args: [id = "", name = ""] }, context) =>
    context.store().write(() => {
      const item = context.store().items.find(id)
      if (item === undefined) throw itemNotFound(id)
      addLabel(context, id, item.project, name)
      return lines([`Added label ${goQuote(name)} to ${id}`])
    }),
}

const unlabel: Command = {
  name: "unlabel",
  operands: "<item-id> <label-name>",
  summary: "Take a label off a task or epic",
  arguments: exactly(2),
  flags: [],
  run: ({ args: [id = "", name = ""] }, context) =>
    context.store().write(() => {
      const { items, labels } = context.store()
      const item = items.find(id)
      if (item === undefined) throw itemNotFound(id)
      const known = labels.of(item.project).find((row) => row.name === name)
      if (known === undefined) throw refuse(`label not found: ${name}`)
      const detached = withErrorPrefix("failed to remove label from item", () => labels.detach(id, known.id))
      if (!detached) throw refuse(`item does not have label: ${name}`)
      return lines([`Removed label ${goQuote(name)} from ${id}`])
    }),
}

const requireProject = ({ flags }: Invocation): string => {
  const project = flags.text("project")
  if (project === "") throw refuse("project is required (-p)")
  return project
}

const table = (labels: readonly LabelRow[], nowMs: number): string[] => {
  const row = (name: string, created: string, color: string): string =>
    `${padRight(name, 20)}  ${padRight(created, 12)}  ${color}`
  return [
    row("NAME", "CREATED", "COLOR"),
    ...labels.map(({ name, createdAt, color }) => row(name, timeAgo(parseTimestamp(createdAt), nowMs), color || "-")),
  ]
}

const add: Command = {
  name: "add",
  operands: "<name>",
  summary: "Create a label",
  arguments: exactly(1),
  usesFolderProject: true,
  flags: [{ name: "color", kind: "text", about: "a colour such as #ff0000" }],
  run: (invocation, context) => {
    const [project, [name = ""]] = [requireProject(invocation), invocation.args]
    return context.store().write(() => {
      const at = context.timestamp()
      const color = invocation.flags.text("color")
      const row = { id: context.newId("lbl"), name, project, color, createdAt: at, updatedAt: at }
      withErrorPrefix("failed to create label", () => context.store().labels.insert(row))
      return lines([`Created label: ${name}`])
    })
  },
}

const rm: Command = {
  name: "rm",
  operands: "<name>",
  summary: "Delete a label and take it off every item",
  arguments: exactly(1),
  usesFolderProject: true,
  flags: [],
  run: (invocation, context) => {
    const [project, [name = ""]] = [requireProject(invocation), invocation.args]
    return context.store().write(() => {
      const { labels } = context.store()
      const known = labels.of(project).find((label) => label.name === name)
      if (known === undefined) throw refuse(`label not found: ${name}`)
      withErrorPrefix("failed to delete label", () => labels.remove(known.id))
      return lines([`Deleted label: ${name}`])
    })
  },
}

const rename: Command = {
  name: "rename",
  operands: "<old-name> <new-name>",
  summary: "Rename a label",
  arguments: exactly(2),
  usesFolderProject: true,
  flags: [],
  run: (invocation, context) => {
    const [project, [old = "", name = ""]] = [requireProject(invocation), invocation.args]
    return context.store().write(() => {
      const at = context.timestamp()
      const found = withErrorPrefix("failed to rename label", () =>
        context.store().labels.rename(project, old, name, at),
      )
      if (!found) throw refuse(`label not found: ${old}`)
      return lines([`Renamed label: ${old} -> ${name}`])
    })
  },
}

const labels: Command = {
  name: "labels",
  operands: "",
  summary: "List a project's labels, or create, delete or rename one",
  arguments: anyArguments,
  usesFolderProject: true,
  flags: [],
  children: [add, rm, rename],
  run: (invocation, context) => {
    const project = requireProject(invocation)
    const rows = withErrorPrefix("failed to list labels", () => context.store().labels.of(project))
    return lines(rows.length === 0 ? ["No labels"] : table(rows, context.nowMs()))
  },
}

export const linkCommands: readonly Command[] = [parent, blocks, project, label, unlabel, labels]
