import { homedir } from "node:os"
import { isAbsolute, join } from "node:path"
import { field, isRecord, text } from "./schema.ts"
import type { StoredMessage } from "./sessions.ts"
import type { ReadOnlyDatabase } from "./sqlite.ts"

/*
 * OpenCode's own database, for a command that runs outside of OpenCode: it holds the sessions of all projects. 1.2.15 and 1.18.33 have the
 * tables `session`, `message` and `part`, 2.0.15 `session_v2` and `session_message`; one that was upgraded may have both.
 */

/** OpenCode takes `OPENCODE_DB` from 1.18 on: a path, or a name in its folder of data. */
export const openCodeDatabase = (environment: NodeJS.ProcessEnv = process.env): string => {
  const { XDG_DATA_HOME: data = "", HOME: home = homedir(), OPENCODE_DB: named = "" } = environment
  const folder = join(isAbsolute(data) ? data : join(home, ".local", "share"), "opencode")
  if (isAbsolute(named)) return named
  return join(folder, named === "" ? "opencode.db" : named)
}

/** `updatedAt` in epoch milliseconds. In a child, a subagent's, an agent speaks as the user. `hasTool`: OpenCode 1 has read_session. */
export type StoredSession = {
  readonly id: string
  readonly title: string
  readonly updatedAt: number
  readonly isChild: boolean
  readonly hasTool: boolean
}

type SessionRow = {
  readonly id: string
  readonly title: string | null
  readonly updated: number
  readonly revert: string | null
  readonly parent: string | null
}

/** Of the folder and those in it, and of the repository that has it as its worktree; OpenCode 1 has one project for all folders outside git. */
const sessionsOf = (table: string): string => `
  SELECT s.id, s.title, s.time_updated AS updated, s.revert, s.parent_id AS parent
  FROM ${table} s LEFT JOIN project p ON p.id = s.project_id
  WHERE EXISTS (
    SELECT 1 FROM json_each(?) AS root
    WHERE s.directory = root.value OR substr(s.directory, 1, length(root.value) + 1) = root.value || '/'
      OR (p.id <> 'global' AND (p.worktree = root.value
        OR (json_valid(p.sandboxes) AND EXISTS (SELECT 1 FROM json_each(p.sandboxes) AS one WHERE one.value = root.value)))))
  ORDER BY s.time_updated DESC`

const parsed = (json: string | null): unknown => {
  try {
    return JSON.parse(json ?? "null")
  } catch {
    // A damaged row hides no other.
    return undefined
  }
}

/** OpenCode hides the message that was undone, and all later ones; with a part, only what follows that. */
const createIsHidden = (revert: string | null): ((id: string) => boolean) => {
  const undone = parsed(revert)
  const first = text(field(undone, "messageID"))
  if (first === undefined) return () => false
  return text(field(undone, "partID")) === undefined ? (id) => id >= first : (id) => id > first
}

type MessageRow = { readonly id: string; readonly type: string; readonly created: number; readonly data: string }

/** The fields that a transcript reads; the types of OpenCode 1 have more. */
const message = (info: object, parts: readonly unknown[]): StoredMessage =>
  ({ info, parts }) as unknown as StoredMessage

const contentText = (content: unknown): string =>
  (Array.isArray(content) ? content : []).flatMap((each) => text(field(each, "text")) ?? []).join("\n")

const partOf2 = (content: unknown): unknown => {
  const state = field(content, "state")
  if (field(content, "type") !== "tool") return content
  const status = text(field(state, "status")) ?? "running"
  const [output, error] = [contentText(field(state, "content")), text(field(state, "error", "message")) ?? ""]
  return {
    type: "tool",
    tool: text(field(content, "name")) ?? "",
    state: { status, input: field(state, "input"), output, error },
  }
}

/** A row of OpenCode 2 as a message of OpenCode 1; undefined for one that says nothing. */
const messageOf2 = ({ id, type, data }: MessageRow): StoredMessage | undefined => {
  const entry = parsed(data)
  if (!isRecord(entry)) return undefined
  if (type === "user") return message({ id, role: "user" }, [{ type: "text", text: text(entry.text) ?? "" }])
  if (type === "compaction")
    return message({ id, role: "assistant", summary: true }, [{ type: "text", text: text(entry.summary) ?? "" }])
  if (type !== "assistant") return undefined
  return message({ id, role: "assistant" }, (Array.isArray(entry.content) ? entry.content : []).map(partOf2))
}

type Version = {
  readonly session: string
  readonly message: string
  readonly messages: string
  read(database: ReadOnlyDatabase, row: MessageRow): StoredMessage | undefined
}

const VERSIONS: readonly Version[] = [
  {
    session: "session",
    message: "message",
    messages:
      "SELECT id, '' AS type, time_created AS created, data FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC",
    read: (database, { id, data }) => {
      const info = parsed(data)
      if (!isRecord(info)) return undefined
      const parts = database.all<{ data: string }>("SELECT data FROM part WHERE message_id = ? ORDER BY id", id)
      return message({ ...info, id }, parts.map((part) => parsed(part.data)).filter(isRecord))
    },
  },
  {
    session: "session_v2",
    message: "session_message",
    messages:
      "SELECT id, type, time_created AS created, data FROM session_message WHERE session_id = ? ORDER BY seq DESC",
    read: (_, row) => messageOf2(row),
  },
]

/** `at` in epoch milliseconds. */
type Dated = { readonly at: number; readonly message: StoredMessage }

/** A session and its messages, the newest first, which are read as they are asked for. Messages that the user undid are left out. */
export type SessionMessages = { readonly session: StoredSession; messages(): Generator<Dated> }

const hasTable = (database: ReadOnlyDatabase, name: string): boolean =>
  database.all("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", name).length > 0

/**
 * The sessions of a project, those of subagents too, the last used first.
 *
 * @param roots absolute paths of the project's folder: as it is named, and without links
 * @throws SQLite's own error
 */
export const projectSessions = (database: ReadOnlyDatabase, roots: readonly string[]): SessionMessages[] => {
  const seen = new Set<string>()
  return VERSIONS.filter(({ session, message: table }) => hasTable(database, session) && hasTable(database, table))
    .flatMap((version) =>
      database.all<SessionRow>(sessionsOf(version.session), JSON.stringify(roots)).map((row) => ({
        version,
        row,
      })),
    )
    .sort((one, other) => other.row.updated - one.row.updated)
    .filter(({ row: { id } }) => !seen.has(id) && seen.add(id))
    .map(({ version, row: { id, title, updated, revert, parent } }) => ({
      session: {
        id,
        title: title ?? "",
        updatedAt: updated,
        isChild: parent !== null,
        hasTool: version.session === "session",
      },
      *messages() {
        const isHidden = createIsHidden(revert)
        for (const row of database.rows<MessageRow>(version.messages, id)) {
          if (isHidden(row.id)) continue
          const read = version.read(database, row)
          if (read) yield { at: row.created, message: read }
        }
      },
    }))
}
