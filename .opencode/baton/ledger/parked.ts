import { newestOfEach, splitHandoffs, toHandoffBody } from "./description.ts"
import {
  describeEntry,
  type OutboxEntry,
  type OutboxRecord,
  type ParkedEntry,
  PUT_BACK,
  recordID,
} from "./outbox-store.ts"

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

/** @throws Error for a record that belongs to no task, in words for the user */
export const checkHasTask = ({ file, record }: ParkedEntry): void => {
  if (!record) throw new Error(`${recordID(file)} is no record that can be read, and stays parked`)
  if (taskOf(record.entry) === undefined)
    throw new Error(`${recordID(file)} is a ${describeEntry(record.entry)}, which belongs to no task`)
}

/** The task that parked records go to. */
export type Target = { readonly id: string; readonly description: string }

/** The specification that a handoff carries is the one of its first task. */
const redirect = (entry: OutboxEntry, { id }: Target): OutboxEntry => {
  if (!("taskID" in entry) || entry.taskID === id) return entry
  if (entry.kind === "log") return { ...entry, taskID: id }
  return { kind: entry.kind, taskID: id, sessionID: entry.sessionID, section: entry.section }
}

/** Turns a handoff into a log entry if the description has a newer one of its session. */
const keepNewer = (entry: OutboxEntry, { description }: Target): OutboxEntry => {
  if (entry.kind !== "handoff") return entry
  const body = toHandoffBody(entry.section)
  if (newestOfEach([...splitHandoffs(description).handoffs, body]).includes(body)) return entry
  return { kind: "log", taskID: entry.taskID, message: `An older handoff, delivered late:\n\n${body}` }
}

/**
 * Prepares parked records for their delivery to a task, which may be another one than before.
 *
 * The task may have a log entry already, for example from a copy of the record. The attempt makes the delivery look for it:
 * the first of equal entries is written if the task has none, the second if it has one.
 */
export const renewRecords = <Parked extends { readonly record: OutboxRecord }>(
  parked: readonly Parked[],
  target: Target,
): Parked[] => {
  const counts = new Map<string, number>()
  const renew = (record: OutboxRecord): OutboxRecord => {
    const entry = keepNewer(redirect(record.entry, target), target)
    if (entry.kind !== "log") return { ...record, entry, attempt: undefined }
    const equalBefore = counts.get(entry.message) ?? 0
    counts.set(entry.message, equalBefore + 1)
    if (record.attempt && entry === record.entry) return record
    return { ...record, entry, attempt: { at: record.createdAt, by: PUT_BACK, equalBefore } }
  }
  return parked.map((one) => ({ ...one, record: renew(one.record) }))
}
