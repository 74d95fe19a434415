import { field, text } from "../../host/schema.ts"
import { isObject } from "../protocol.ts"

/** A request that waits for a person, as it is shown. */
export type Wait = (
  | { readonly kind: "permission"; readonly title: string; readonly type: string; readonly subject: string }
  | { readonly kind: "question"; readonly header: string; readonly text: string; readonly options: readonly string[] }
) & {
  readonly id?: string
  readonly session?: string
  readonly rootSession?: string
  readonly rootTitle?: string
  readonly subagent?: string
  /** ISO 8601. */
  readonly since?: string
  /** The way to answer it: a command, or the process and the folder in which it waits. */
  readonly goTo?: string
}

/** A word for a shell: a statefile's content is not trusted, and its reader may copy the command. */
const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)

const OWN_SERVER = /^http:\/\/(?:127\.0\.0\.1|localhost|\[::1\]|0\.0\.0\.0):\d{1,5}\/?$/

type Where = { readonly pid: unknown; readonly place: unknown; readonly session: string | undefined }

const goToOf = ({ pid, place, session }: Where): string | undefined => {
  if (typeof pid !== "number" || pid <= 0) return undefined
  const directory = text(field(place, "directory"))
  const server = text(field(place, "server_url"))
  const command = session === undefined ? [] : ["--session", session]
  if (server !== undefined && OWN_SERVER.test(server) && directory !== undefined)
    return ["opencode", "attach", server.replace(/\/$/, ""), "--dir", directory, ...command].map(quoted).join(" ")
  const folder = directory === undefined ? "" : ` in ${directory}`
  const later = session === undefined ? "" : `; once it has ended: ${["opencode", ...command].map(quoted).join(" ")}`
  return `OpenCode, process ${pid}${folder}${later}`
}

/** Reads what waits from a state, in this process or from a file of any content. */
export const readWaits = (state: unknown): readonly Wait[] => {
  const waiting = field(state, "extensions", "waiting")
  const [pid, place] = [field(state, "opencode_pid"), field(state, "extensions", "place")]
  const session = text(field(state, "root_opencode_session_id"))
  if (Array.isArray(waiting)) return waiting.flatMap((each: unknown) => readWait(each, { pid, place, session }))
  // A strict state, or another program's, tells of its root session alone.
  const where = { pid, place: undefined, session }
  const subject = field(state, "extensions", "permission_subject")
  const focus = field(state, "tui_focus")
  const permission = isObject(field(focus, "details")) ? Object(field(focus, "details")) : {}
  const question = field(state, "pendingQuestion")
  return [
    ...(field(focus, "ty") === "permission" ? readWait({ ...permission, subject, kind: "permission" }, where) : []),
    ...(isObject(question) ? readWait({ ...question, kind: "question" }, where) : []),
  ]
}

const readWait = (given: unknown, where: Where): Wait[] => {
  const part = (key: string): string => text(field(given, key)) ?? ""
  const some = <Name extends string>(name: Name, value: string | undefined) =>
    (value === undefined ? {} : { [name]: value }) as { readonly [N in Name]?: string }
  const rootSession = text(field(given, "root_session_id"))
  const about = {
    ...some("id", text(field(given, "id"))),
    ...some("session", text(field(given, "session_id"))),
    ...some("rootSession", rootSession),
    ...some("rootTitle", text(field(given, "root_title"))),
    ...some("subagent", text(field(given, "subagent"))),
    ...some("since", text(field(given, "since"))),
    ...some("goTo", goToOf({ ...where, session: rootSession ?? where.session })),
  }
  const options = field(given, "options")
  switch (field(given, "kind")) {
    case "permission":
      return [{ kind: "permission", title: part("title"), type: part("type"), subject: part("subject"), ...about }]
    case "question":
      return [
        {
          kind: "question",
          header: part("header"),
          text: part("text"),
          options: Array.isArray(options) ? options.filter((option) => typeof option === "string") : [],
          ...about,
        },
      ]
    default:
      return []
  }
}
