import { atLeast, type Command, exactly, itemNotFound, lines, refuse, step } from "../command.ts"

const log: Command = {
  name: "log",
  operands: "<id> <message>",
  summary: "Add a line with the time to a task's log",
  arguments: atLeast(2),
  flags: [],
  run: ({ args: [id = "", ...words] }, context) =>
    context.store().write(() => {
      step("failed to add log", () => context.store().logs.add(id, words.join(" ")))
      return lines([`Logged to ${id}`])
    }),
}

const append: Command = {
  name: "append",
  operands: "<id> <text>",
  summary: "Add a paragraph to a task's description",
  arguments: atLeast(2),
  flags: [],
  run: ({ args: [id = "", ...words] }, context) =>
    context.store().write(() => {
      const { items } = context.store()
      const item = step("failed to append description", () => items.find(id))
      if (item === undefined) throw itemNotFound(id)
      const description = `${item.description}\n\n${words.join(" ")}`
      step("failed to append description", () => items.update(id, { description, updatedAt: context.timestamp() }))
      return lines([`Appended to ${id}`])
    }),
}

const desc: Command = {
  name: "desc",
  operands: "<id> <text>",
  summary: "Replace a task's description",
  arguments: atLeast(2),
  flags: [],
  run: ({ args: [id = "", ...words] }, context) =>
    context.store().write(() => {
      const changes = { description: words.join(" "), updatedAt: context.timestamp() }
      const found = step("failed to set description", () => context.store().items.update(id, changes))
      if (!found) throw itemNotFound(id)
      return lines([`Updated description for ${id}`])
    }),
}

const edit: Command = {
  name: "edit",
  operands: "<id>",
  summary: "Change a task's title (--title) or its definition of done (--dod)",
  arguments: exactly(1),
  flags: [
    { name: "title", kind: "text", about: "the new title" },
    { name: "dod", kind: "text", about: 'the definition of done; "" clears it' },
  ],
  run: ({ args: [id = ""], flags }, context) =>
    context.store().write(() => {
      const { items } = context.store()
      const updatedAt = context.timestamp()
      if (flags.given("dod")) {
        const definitionOfDone = flags.text("dod") === "" ? null : flags.text("dod")
        const found = step("failed to set definition of done", () => items.update(id, { definitionOfDone, updatedAt }))
        if (!found) throw itemNotFound(id)
        return lines([`${definitionOfDone === null ? "Cleared" : "Updated"} definition of done for ${id}`])
      }
      const title = flags.text("title")
      if (title === "" && items.find(id) !== undefined) {
        throw refuse("the embedded ledger opens no editor: give --title or --dod, or use 'prog desc <id> <text>'")
      }
      if (!step("failed to set title", () => items.update(id, { title, updatedAt }))) throw itemNotFound(id)
      return lines([`Updated title for ${id}`])
    }),
}

export const taskTextCommands: readonly Command[] = [log, append, desc, edit]
