import { createStateFolder } from "../../host/state.ts"
import { type ParkedEntry, subjectOf } from "../../ledger/outbox-entry.ts"
import { createOutboxFiles, type OutboxFiles } from "../../ledger/outbox-files.ts"
import { type Check, type Observation, ok, warning } from "../finding.ts"

const MOST_SHOWN = 5

const describeParked = ({ file, entry, reason, since }: ParkedEntry, outbox: string): Observation => {
  const what = entry === undefined ? "a record" : `a ${entry.kind} of ${subjectOf(entry)}`
  const message = `${what} could not be delivered and is parked${since === "" ? "" : ` since ${since}`}: ${reason}`
  return warning(message, `Mend the cause and move ${file} to ${outbox} to have it tried again, or delete it.`)
}

/** Reading a record takes zod, which a fresh project does not have; the notes beside the records can still be read. */
const listParked = async (files: OutboxFiles, outbox: string): Promise<readonly Observation[]> => {
  let parked: readonly ParkedEntry[]
  try {
    parked = await files.listParked()
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return [warning(`there are parked records, which cannot be read: ${why}`, `Read ${outbox}/parked/*.reason.`)]
  }
  const shown = parked.slice(0, MOST_SHOWN).map((entry) => describeParked(entry, outbox))
  const rest = parked.length - shown.length
  return rest > 0 ? [...shown, warning(`${rest} more records are parked`, `Look into ${outbox}/parked.`)] : shown
}

export const outboxCheck: Check = {
  id: "outbox",
  needsBundle: true,
  examine: async ({ root }) => {
    const state = createStateFolder(root)
    const outbox = state.path("outbox")
    const files = createOutboxFiles(state)
    const { length: waiting } = await files.list()
    const fix = "They are delivered when OpenCode next works on a task here and the ledger answers; see its findings."
    return [
      waiting === 0
        ? ok("no record waits to be delivered")
        : warning(`${waiting} ${waiting === 1 ? "record waits" : "records wait"} to be delivered to the ledger`, fix),
      ...(await listParked(files, outbox)),
    ]
  },
}
