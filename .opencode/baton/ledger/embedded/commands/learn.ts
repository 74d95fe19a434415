import { atLeast, type Command, type CommandContext, exactly, lines, refuse, step } from "../command.ts"
import type { FlagSpec } from "../flags.ts"
import { compareText } from "../go-text.ts"
import type { ItemRow, LearningChanges } from "../store.ts"

const DETAIL_FLAG: FlagSpec = { name: "detail", kind: "text", about: "the full explanation; '-' reads standard input" }

const readDetail = (given: string, context: CommandContext): string =>
  given === "-" ? context.readStdin().trim() : given

/** The project's item in progress that was touched last. */
const currentTask = (context: CommandContext, project: string): ItemRow | undefined =>
  context
    .store()
    .items.all()
    .filter((item) => item.status === "in_progress" && item.project === project)
    .toSorted((left, right) => compareText(right.updatedAt, left.updatedAt))[0]

const tagLearning = (context: CommandContext, learningId: string, project: string, name: string, at: string): void => {
  const { concepts, learnings } = context.store()
  const known = concepts.of(project).find((concept) => concept.name === name)
  const id = known?.id ?? context.newId("con")
  if (known === undefined) {
    step(`failed to create concept "${name}"`, () => concepts.insert({ id, name, project, lastUpdated: at }))
  } else step(`failed to update concept "${name}"`, () => concepts.update(project, name, { lastUpdated: at }))
  step("failed to create concept association", () => learnings.tag(learningId, id))
}

const updateLearning = (context: CommandContext, what: string, id: string, changes: LearningChanges): void => {
  const found = step(`failed to update learning${what}`, () => context.store().learnings.update(id, changes))
  if (!found) throw refuse(`learning not found: ${id}`)
}

const edit: Command = {
  name: "edit",
  operands: "<learning-id>",
  summary: "Change a learning's summary or detail",
  arguments: exactly(1),
  flags: [{ name: "summary", kind: "text", about: "the new summary" }, DETAIL_FLAG],
  run: ({ args: [id = ""], flags }, context) => {
    const [summary, given] = [flags.text("summary"), flags.text("detail")]
    if (summary === "" && given === "") throw refuse("--summary or --detail is required")
    const detail = readDetail(given, context)
    return context.store().write(() => {
      if (summary !== "") updateLearning(context, "", id, { summary, updatedAt: context.timestamp() })
      if (given !== "") updateLearning(context, " detail", id, { detail, updatedAt: context.timestamp() })
      return lines([`Updated ${id}`])
    })
  },
}

const stale: Command = {
  name: "stale",
  operands: "<learning-id> [learning-id...]",
  summary: "Mark learnings as out of date",
  arguments: atLeast(1),
  flags: [{ name: "reason", kind: "text", about: "why; shown once, not kept" }],
  run: ({ args, flags }, context) =>
    context.store().write(() => {
      for (const id of args) {
        updateLearning(context, " status", id, { status: "stale", updatedAt: context.timestamp() })
      }
      const what = args.length === 1 ? args.join("") : `${args.length} learnings`
      const reason = flags.text("reason") === "" ? "" : `: ${flags.text("reason")}`
      return lines([`Marked ${what} as stale${reason}`])
    }),
}

const rm: Command = {
  name: "rm",
  operands: "<learning-id>",
  summary: "Delete a learning",
  arguments: exactly(1),
  flags: [],
  run: ({ args: [id = ""] }, context) =>
    context.store().write(() => {
      const found = step("failed to delete learning", () => context.store().learnings.remove(id))
      if (!found) throw refuse(`learning not found: ${id}`)
      return lines([`Deleted ${id}`])
    }),
}

const learn: Command = {
  name: "learn",
  operands: "<summary>",
  summary: "Keep something worth knowing, under one or more concepts; prints its id",
  arguments: atLeast(1),
  flags: [
    { name: "concept", short: "c", kind: "list", about: "a concept it belongs to; may be given again" },
    { name: "file", short: "f", kind: "list", about: "a file it is about; may be given again" },
    DETAIL_FLAG,
  ],
  children: [edit, stale, rm],
  run: ({ args, flags }, context) => {
    const [project, names] = [flags.text("project"), flags.list("concept")]
    if (project === "") throw refuse("project is required (-p)")
    if (names.length === 0) throw refuse("at least one concept is required (-c)")
    const detail = readDetail(flags.text("detail"), context)
    return context.store().write(() => {
      const [id, at, task] = [context.newId("lrn"), context.timestamp(), currentTask(context, project)]
      const row = {
        id,
        project,
        createdAt: at,
        updatedAt: at,
        taskId: task?.id ?? null,
        summary: args.join(" "),
        detail,
        files: flags.list("file"),
        status: "active",
      }
      step("failed to insert learning", () => context.store().learnings.insert(row))
      for (const name of names) tagLearning(context, id, project, name, at)
      return lines([task === undefined ? id : `${id} (linked to ${task.id})`])
    })
  },
}

export const learnCommands: readonly Command[] = [learn]
