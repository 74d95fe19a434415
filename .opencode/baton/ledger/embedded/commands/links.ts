import { type Command, type CommandContext, refuse, withErrorPrefix } from "../command.ts"
import type { Invocation } from "../flags.ts"
import { padRight, parseTimestamp, timeAgo } from "../format.ts"
import { DRAFT_IN_EPIC, findItem, requireItem, updateItem } from "../items.ts"
import type { LabelRow, LedgerStore } from "../store.ts"

export const ensureProject = (store: LedgerStore, name: string, at: string): void =>
  store.insert("projects", { name, created_at: at, updated_at: at }, "OR IGNORE")

/** Moves an item under an epic. Called inside a write. */
export const setParent = (store: LedgerStore, id: string, parentId: string, at: string): void => {
  const parent = findItem(store, parentId)
  if (parent === undefined) throw refuse(`parent not found: ${parentId} (use 'prog list' to see available items)`)
  if (parent.type !== "epic") throw refuse(`parent must be an epic, got ${parent.type}`)
  if (requireItem(store, id).status === "draft") throw refuse(DRAFT_IN_EPIC)
  updateItem(store, id, { parent_id: parentId, updated_at: at })
}

/** Makes one item depend on another. Called inside a write. */
export const addDependency = (store: LedgerStore, itemId: string, dependsOn: string): void => {
  const isThere = findItem(store, itemId) && findItem(store, dependsOn) && itemId !== dependsOn
  if (!isThere) {
    throw refuse(`one or both items not found: ${itemId}, ${dependsOn} (use 'prog list' to see available items)`)
  }
  store.insert("deps", { item_id: itemId, depends_on: dependsOn }, "OR IGNORE")
}

const labelsOf = (store: LedgerStore, project: string): LabelRow[] =>
  store.all("SELECT * FROM labels WHERE project = ? ORDER BY name", project)

const findLabel = (store: LedgerStore, project: string, name: string): LabelRow | undefined =>
  labelsOf(store, project).find((label) => label.name === name)

const createLabel = (context: CommandContext, project: string, name: string, color: string): string => {
  const [id, at] = [context.newId("lbl"), context.timestamp()]
  const row = { id, name, project, color, created_at: at, updated_at: at }
  withErrorPrefix("failed to create label", () => context.store().insert("labels", row))
  return id
}

/** Attaches a label, and creates it in the item's project if it is new. Called inside a write. */
export const addLabel = (context: CommandContext, itemId: string, project: string, name: string): void => {
  const label_id = findLabel(context.store(), project, name)?.id ?? createLabel(context, project, name, "")
  context.store().insert("item_labels", { item_id: itemId, label_id }, "OR IGNORE")
}

/** Takes a label off an item, if it has it. Called inside a write. */
export const removeLabel = (store: LedgerStore, itemId: string, name: string): void =>
  void store.run(
    "DELETE FROM item_labels WHERE item_id = ? AND label_id IN (SELECT id FROM labels WHERE name = ?)",
    itemId,
    name,
  )

/** A command with two arguments that writes. */
type PairCommand = Pick<Command, "name" | "operands" | "summary"> & {
  readonly write: (first: string, second: string, store: LedgerStore, context: CommandContext) => string
}

const pairCommand = ({ name, operands = "", summary, write }: PairCommand): Command => ({
  name,
  operands,
  summary,
  arguments: { least: 2, most: 2 },
  run: ({ args: [first = "", second = ""] }, context) =>
    context.write((store) => [write(first, second, store, context)]),
})

const parent = pairCommand({
  name: "parent",
  operands: "<id> <epic-id>",
  summary: "Put a task under an epic",
  write: (id, epic, store, context) => {
    setParent(store, id, epic, context.timestamp())
    return `${id} is now under ${epic}`
  },
})

const blocks = pairCommand({
  name: "blocks",
  operands: "<id> <other-id>",
  summary: "Make the second task wait for the first",
  write: (id, other, store) => {
    addDependency(store, other, id)
    return `${id} now blocks ${other}`
  },
})

const project = pairCommand({
  name: "project",
  operands: "<id> <project>",
  summary: "Move a task to a project",
  write: (id, name, store, context) => {
    const at = context.timestamp()
    if (name !== "") ensureProject(store, name, at)
    updateItem(store, id, { project: name, updated_at: at })
    return `${id} is now in project ${name}`
  },
})

const label = pairCommand({
  name: "label",
  operands: "<item-id> <label-name>",
  summary: "Attach a label to a task or epic",
  write: (id, name, store, context) => {
    addLabel(context, id, requireItem(store, id).project, name)
    return `Added label ${JSON.stringify(name)} to ${id}`
  },
})

const unlabel = pairCommand({
  name: "unlabel",
  operands: "<item-id> <label-name>",
  summary: "Take a label off a task or epic",
  write: (id, name, store) => {
    const known = findLabel(store, requireItem(store, id).project, name)
    if (known === undefined) throw refuse(`label not found: ${name}`)
    if (store.run("DELETE FROM item_labels WHERE item_id = ? AND label_id = ?", id, known.id) === 0)
      throw refuse(`item does not have label: ${name}`)
    return `Removed label ${JSON.stringify(name)} from ${id}`
  },
})

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
    ...labels.map(({ name, created_at, color }) => row(name, timeAgo(parseTimestamp(created_at), nowMs), color || "-")),
  ]
}

const add: Command = {
  name: "add",
  operands: "<name>",
  summary: "Create a label",
  arguments: { least: 1, most: 1 },
  usesFolderProject: true,
  flags: [{ name: "color", kind: "text", about: "a colour such as #ff0000" }],
  run: (invocation, context) => {
    const [project, [name = ""]] = [requireProject(invocation), invocation.args]
    context.write(() => createLabel(context, project, name, invocation.flags.text("color")))
    return [`Created label: ${name}`]
  },
}

const rm: Command = {
  name: "rm",
  operands: "<name>",
  summary: "Delete a label and take it off every item",
  arguments: { least: 1, most: 1 },
  usesFolderProject: true,
  run: (invocation, context) => {
    const [project, [name = ""]] = [requireProject(invocation), invocation.args]
    return context.write((store) => {
      const known = findLabel(store, project, name)
      if (known === undefined) throw refuse(`label not found: ${name}`)
      store.run("DELETE FROM item_labels WHERE label_id = ?", known.id)
      store.run("DELETE FROM labels WHERE id = ?", known.id)
      return [`Deleted label: ${name}`]
    })
  },
}

const rename: Command = {
  name: "rename",
  operands: "<old-name> <new-name>",
  summary: "Rename a label",
  arguments: { least: 2, most: 2 },
  usesFolderProject: true,
  run: (invocation, context) => {
    const [project, [old = "", name = ""]] = [requireProject(invocation), invocation.args]
    return context.write((store) => {
      const changes = { name, updated_at: context.timestamp() }
      const found = withErrorPrefix("failed to rename label", () =>
        store.update("labels", { project, name: old }, changes),
      )
      if (!found) throw refuse(`label not found: ${old}`)
      return [`Renamed label: ${old} -> ${name}`]
    })
  },
}

const labels: Command = {
  name: "labels",
  summary: "List a project's labels, or create, delete or rename one",
  usesFolderProject: true,
  children: [add, rm, rename],
  run: (invocation, context) => {
    const project = requireProject(invocation)
    const rows = labelsOf(context.store(), project)
    return rows.length === 0 ? ["No labels"] : table(rows, context.nowMs())
  },
}

export const linkCommands: readonly Command[] = [parent, blocks, project, label, unlabel, labels]
