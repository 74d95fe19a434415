import { counted } from "../../../host/text.ts"
import { listCopies } from "../../copies.ts"
import type { Command } from "../command.ts"
import { timeAgo } from "../format.ts"
import { restoreCopy } from "../restore-copy.ts"

const restore: Command = {
  name: "restore",
  operands: "<day>",
  summary: "Put the copy of a day in the place of the database, which is moved aside",
  arguments: { least: 1, most: 1 },
  run: ({ args: [day = ""] }, { location, nowMs, countTasks }) => {
    const { tasks, aside } = restoreCopy(location, day, { at: new Date(nowMs()), countTasks })
    const kept = aside === undefined ? [] : [`The one that was there is now ${aside}`]
    return [`Restored ${counted(tasks, "task")} from the copy of ${day}`, ...kept]
  },
}

const copies: Command = {
  name: "copies",
  summary: "List the daily copies of the database, or restore one",
  arguments: { least: 0, most: 0 },
  children: [restore],
  run: (_, { location, nowMs }) => {
    const all = listCopies(location)
    if (all.length === 0) return ["No copies"]
    return all.map(({ day, path, bytes, madeAt }) => {
      const age = timeAgo({ epochMs: madeAt, offsetMinutes: 0 }, nowMs())
      return [day, age.padEnd(10), `${Math.ceil(bytes / 1024)} KB`.padStart(10), path].join("  ")
    })
  },
}

export const copyCommands: readonly Command[] = [copies]
