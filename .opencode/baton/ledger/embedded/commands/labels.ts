import { anyArguments, type Command, exactly, type Invocation, lines, refuse, step } from "../command.ts"
import { padRight } from "../go-text.ts"
import type { LabelRow } from "../store.ts"
import { parseTimestamp, timeAgo } from "../timestamps.ts"

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
  flags: [{ name: "color", kind: "text", about: "a colour such as #ff0000" }],
  run: (invocation, context) => {
    const [project, [name = ""]] = [requireProject(invocation), invocation.args]
    return context.store().write(() => {
      const at = context.timestamp()
      const color = invocation.flags.text("color")
      const row = { id: context.newId("lbl"), name, project, color, createdAt: at, updatedAt: at }
      step("failed to create label", () => context.store().labels.insert(row))
      return lines([`Created label: ${name}`])
    })
  },
}

const rm: Command = {
  name: "rm",
  operands: "<name>",
  summary: "Delete a label and take it off every item",
  arguments: exactly(1),
  flags: [],
  run: (invocation, context) => {
    const [project, [name = ""]] = [requireProject(invocation), invocation.args]
    return context.store().write(() => {
      const { labels } = context.store()
      const known = labels.of(project).find((label) => label.name === name)
      if (known === undefined) throw refuse(`label not found: ${name}`)
      step("failed to delete label", () => labels.remove(known.id))
      return lines([`Deleted label: ${name}`])
    })
  },
}

const rename: Command = {
  name: "rename",
  operands: "<old-name> <new-name>",
  summary: "Rename a label",
  arguments: exactly(2),
  flags: [],
  run: (invocation, context) => {
    const [project, [old = "", name = ""]] = [requireProject(invocation), invocation.args]
    return context.store().write(() => {
      const at = context.timestamp()
      const found = step("failed to rename label", () => context.store().labels.rename(project, old, name, at))
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
  flags: [],
  children: [add, rm, rename],
  run: (invocation, context) => {
    const project = requireProject(invocation)
    const rows = step("failed to list labels", () => context.store().labels.of(project))
    return lines(rows.length === 0 ? ["No labels"] : table(rows, context.nowMs()))
  },
}

export const labelCommands: readonly Command[] = [labels]
