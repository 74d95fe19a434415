import { Database } from "bun:sqlite"
import { join } from "node:path"
import type { TestProject } from "../../../test/support/test-project.ts"
import { sortableId } from "../seed-session.ts"

type MessageRow = { id: string; time_created: number; data: string }

const BUSY_MS = 10_000

/**
 * Repeats a session's first turn in OpenCode's own database, a millisecond a message: a long conversation in the time of a
 * short one. No hook runs for what is stored so; it is there whenever the session is read.
 *
 * @param length messages of that turn
 */
export const createStoredTurns = ({ environment }: TestProject, sessionID: string, length: number) => {
  const database = new Database(join(environment.XDG_DATA_HOME ?? "", "opencode", "opencode.db"))
  database.run(`PRAGMA busy_timeout = ${BUSY_MS}`)
  const messages = database.query<MessageRow, [string, number]>(
    "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY id LIMIT ?",
  )
  const newest = database.query<{ at: number }, [string]>(
    "SELECT max(time_created) AS at FROM message WHERE session_id = ?",
  )
  const count = database.query<{ total: number }, [string]>(
    "SELECT count(*) AS total FROM message WHERE session_id = ?",
  )
  const partsOf = database.query<{ data: string }, [string]>("SELECT data FROM part WHERE message_id = ? ORDER BY id")
  const addMessage = database.query(
    "INSERT INTO message (id, session_id, time_created, time_updated, data) VALUES (?1, ?2, ?3, ?3, ?4)",
  )
  const addPart = database.query(
    "INSERT INTO part (id, message_id, session_id, time_created, time_updated, data) VALUES (?1, ?2, ?3, ?4, ?4, ?5)",
  )
  const turn = messages.all(sessionID, length).map((row) => ({
    info: JSON.parse(row.data) as { role: string; time: object },
    parts: partsOf.all(row.id).map(({ data }) => data),
  }))
  if (turn.length < length) throw new Error(`expected a turn of ${length} messages, found ${turn.length}`)

  const store = database.transaction((times: number, after: number): number => {
    let at = after
    let parentID = ""
    for (const { info, parts } of Array.from({ length: times }, () => turn).flat()) {
      const id = sortableId("msg", ++at, 0)
      if (info.role === "user") parentID = id
      const own = { ...info, time: { ...info.time, created: at }, ...(info.role === "user" ? {} : { parentID }) }
      addMessage.run(id, sessionID, at, JSON.stringify(own))
      for (const [index, data] of parts.entries())
        addPart.run(sortableId("prt", at, index + 1), id, sessionID, at, data)
    }
    return at
  })

  return {
    /** Resolves when the clock is past the newest of them: what OpenCode makes next is newer. */
    repeat: async (times: number): Promise<void> => {
      const last = store.immediate(times, newest.get(sessionID)?.at ?? Date.now())
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, last - Date.now() + 1)))
    },
    count: (): number => count.get(sessionID)?.total ?? 0,
    close: (): void => database.close(),
  }
}
