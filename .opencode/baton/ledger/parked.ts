import { newestOfEach, splitHandoffs, toHandoffBody } from "./description.ts"
import { type OutboxEntry, type ParkedEntry, recordID } from "./outbox-store.ts"

export const taskOf = (entry: OutboxEntry): string | undefined => ("taskID" in entry ? entry.taskID : undefined)

/**
 * Finds the parked records that a person names: by a record's id, by its file, or by a task's id, in any case. All, if
 * none is named.
 *
 * @throws Error for a name that fits none, in words for the user
 */
export const chooseParked = (parked: readonly ParkedEntry[], names: readonly string[]): readonly ParkedEntry[] => {
  if (names.length === 0) return parked
  const fits = ({ file, record }: ParkedEntry, name: string): boolean => {
    const wanted = name.toLowerCase()
    return recordID(file).toLowerCase() === recordID(wanted) || (record && taskOf(record.entry)) === wanted
  }
  const unknown = names.find((name) => !parked.some((one) => fits(one, name)))
  if (unknown !== undefined) throw new Error(`no record with the id or the task '${unknown}' is parked`)
  return parked.filter((one) => names.some((name) => fits(one, name)))
}

/**
 * Turns a handoff into a log entry if the description has a newer one of its session.
 *
 * @param description of the task
 */
export const keepNewer = (entry: OutboxEntry, description: string): OutboxEntry => {
  if (entry.kind !== "handoff") return entry
  const body = toHandoffBody(entry.section)
  if (newestOfEach([...splitHandoffs(description).handoffs, body]).includes(body)) return entry
  return { kind: "log", taskID: entry.taskID, message: `An older handoff, delivered late:\n\n${body}` }
}
