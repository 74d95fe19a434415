import { Database } from "bun:sqlite"
import { join } from "node:path"
import type { Script } from "../../test/support/model/scripted-model.ts"
import { createSession, speak } from "../../test/support/opencode/model-project.ts"
import type { TestServer } from "../../test/support/opencode/opencode-server.ts"
import type { TestProject } from "../../test/support/opencode/test-project.ts"

const BUSY_MS = 10_000
/** Number of messages stored for the same millisecond. */
const AT_ONCE = 36

/** An id that sorts by time like OpenCode's: twelve hex digits of the time, and fourteen characters that make it unique. */
const idAt = (prefix: "msg" | "prt", atMs: number, counter: number, sessionID: string, part = 0): string => {
  const time = (BigInt(atMs) * 0x1000n + BigInt(counter)) & 0xffff_ffff_ffffn
  return `${prefix}_${time.toString(16).padStart(12, "0")}${part.toString(36).padStart(2, "0")}${sessionID.slice(-12)}`
}

/**
 * Repeats a session's first turn, of `length` messages, in OpenCode's own database, to create a long conversation quickly. No
 * hook runs for these messages; every read of the session sees them.
 */
export const openStoredMessages = ({ environment }: TestProject, sessionID: string, length: number) => {
  const database = new Database(join(environment.XDG_DATA_HOME ?? "", "opencode", "opencode.db"))
  database.run(`PRAGMA busy_timeout = ${BUSY_MS}`)
  const partsOf = database.query<{ data: string }, [string]>("SELECT data FROM part WHERE message_id = ? ORDER BY id")
  const extent = database.query<{ total: number; newest: number }, [string]>(
    "SELECT count(*) AS total, max(time_created) AS newest FROM message WHERE session_id = ?",
  )
  const addMessage = database.query(
    "INSERT INTO message (id, session_id, time_created, time_updated, data) VALUES (?1, ?2, ?3, ?3, ?4)",
  )
  const addPart = database.query(
    "INSERT INTO part (id, message_id, session_id, time_created, time_updated, data) VALUES (?1, ?2, ?3, ?4, ?4, ?5)",
  )
  const turn = database
    .query<{ id: string; data: string }, [string]>("SELECT id, data FROM message WHERE session_id = ? ORDER BY id")
    .all(sessionID)
    .slice(0, length)
    .map(({ id, data }) => ({ info: JSON.parse(data) as { role: string; time: object }, parts: partsOf.all(id) }))
  if (turn.length < length) throw new Error(`expected ${length} messages to repeat, found ${turn.length}`)

  const store = database.transaction((count: number, from: number): void => {
    let parentID = ""
    for (let index = 0; index < count; index++) {
      const { info, parts } = turn[index % length] ?? { info: { role: "", time: {} }, parts: [] }
      const [at, counter] = [from + Math.floor(index / AT_ONCE), index % AT_ONCE]
      const id = idAt("msg", at, counter, sessionID)
      const isUser = info.role === "user"
      if (isUser) parentID = id
      const own = { ...info, time: { ...info.time, created: at }, ...(isUser ? {} : { parentID }) }
      addMessage.run(id, sessionID, at, JSON.stringify(own))
      for (const [part, { data }] of parts.entries())
        addPart.run(idAt("prt", at, counter, sessionID, part), id, sessionID, at, data)
    }
  })

  return {
    count: (): number => extent.get(sessionID)?.total ?? 0,
    /** Resolves when the clock is past the newest of them, so that OpenCode's next message is newer. */
    append: async (count: number): Promise<void> => {
      const from = (extent.get(sessionID)?.newest ?? 0) + 1
      store.immediate(count, from)
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, from + count / AT_ONCE + 1 - Date.now())))
    },
    [Symbol.dispose]: (): void => database.close(),
  }
}

/** Room for 10,000 messages and more, so that no automatic compaction occurs. */
export const ROOMY_CONTEXT = 20_000_000

/** A script for any session: one tool step, a reply, and a summary on request. */
export const stepScript: Script = ({ kind, conversation }) => {
  if (kind === "compaction") return { text: "## Done\n- The parser reads CRLF.\n\n## Next\n- Run the tests.\n" }
  if (!conversation.includes("echo step")) return { tool: "bash", input: { command: "echo step" } }
  return { text: "The step is done. ".repeat(20) }
}

/** Creates a session of `count` messages: a real turn with a model that follows `stepScript`, repeated. @returns its id */
export const seedSession = async (server: TestServer, project: TestProject, count: number): Promise<string> => {
  const id = await createSession(server)
  await speak(server, id, "Take a step.")
  using stored = openStoredMessages(project, id, 3)
  await stored.append(count - stored.count())
  const { data } = await server.client.session.messages({ path: { id }, query: { limit: count } })
  if (data?.length === count) return id
  throw new Error(`expected ${count} messages in ${id}, found ${data?.length}`)
}
