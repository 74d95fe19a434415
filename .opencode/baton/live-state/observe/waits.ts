import { field, text } from "../../host/schema.ts"
import { shellWord } from "../../host/text.ts"
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
  /** The way to its session: a command, or the process and the folder in which it waits. */
  readonly goTo?: string
  /** A command that answers it, where the process is a server: a terminal that is attached later does not show it. */
  readonly answer?: string
}

const OWN_SERVER = /^http:\/\/(?:127\.0\.0\.1|localhost|\[::1\]|0\.0\.0\.0):\d{1,5}\/?$/

type Where = { readonly pid: unknown; readonly place: unknown; readonly session: string | undefined }

/** The address at which the process listens, on this machine alone. */
const serverOf = ({ place }: Where): { readonly url: string; readonly directory: string } | undefined => {
  const [url, directory] = [text(field(place, "server_url")), text(field(place, "directory"))]
  if (url === undefined || !OWN_SERVER.test(url) || directory === undefined) return undefined
  return { url: url.replace(/\/$/, ""), directory }
}

const goToOf = (where: Where): string | undefined => {
  const { pid, place, session } = where
  if (typeof pid !== "number" || pid <= 0) return undefined
  const command = session === undefined ? [] : ["--session", session]
  const server = serverOf(where)
  if (server) return ["opencode", "attach", server.url, "--dir", server.directory, ...command].map(shellWord).join(" ")
  const directory = text(field(place, "directory"))
  const folder = directory === undefined ? "" : ` in ${directory}`
  const later = session === undefined ? "" : `; once it has ended: ${["opencode", ...command].map(shellWord).join(" ")}`
  return `OpenCode, process ${pid}${folder}${later}`
}

const answerOf = (given: unknown, where: Where): string | undefined => {
  const server = serverOf(where)
  const [id, session] = [text(field(given, "id")), text(field(given, "session_id"))]
  if (!server || id === undefined || session === undefined) return undefined
  const isPermission = field(given, "kind") === "permission"
  const path = isPermission ? ["session", session, "permissions", id] : ["question", id, "reply"]
  const url = `${[server.url, ...path.map(encodeURIComponent)].join("/")}?directory=${encodeURIComponent(server.directory)}`
  const body = isPermission ? '{"response":"once"}' : '{"answers":[["…"]]}'
  return ["curl", url, "-H", "content-type: application/json", "-d", body].map(shellWord).join(" ")
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
    ...some("answer", answerOf(given, where)),
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
