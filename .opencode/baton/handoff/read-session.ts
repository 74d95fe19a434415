import type { Log } from "../host/log.ts"
import { type Answer, pagesBack, type SessionInfo, type Sessions, type StoredMessage } from "../host/sessions.ts"
import { type ChainDeps, isInChain } from "./related-sessions.ts"
import { parseSearch } from "./search-pattern.ts"
import { searchSession } from "./session-search.ts"
import type { ToolDetail } from "./tool-detail.ts"
import { renderTranscript } from "./transcript.ts"

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 500

export type ReadRequest = {
  readonly sessionID: string
  readonly limit?: number | undefined
  readonly before?: string | undefined
  readonly search?: string | undefined
  readonly tools?: ToolDetail | undefined
  readonly any?: boolean | undefined
}

export type ReadResult = { readonly title: string; readonly output: string }

export type ReadSessionDeps = {
  sessions: Pick<Sessions, "info" | "messages">
  records: ChainDeps["records"]
  /** Whether two sessions work on the same task. */
  isSameTask: (sessionID: string, other: string) => Promise<boolean>
  log: Pick<Log, "info">
  /** Whether the time for one call is over. */
  startDeadline: () => () => boolean
}

const SESSION_ID = /^ses_[A-Za-z0-9]{1,64}$/
const PAGE_MESSAGES = 200

type Page = { messages: readonly StoredMessage[]; hasOlder: boolean }

class UnreadableSession extends Error {
  override readonly name = "UnreadableSession"
}

const unwrap = <T>(answer: Answer<T>): T => {
  if (answer.kind === "answer") return answer.value
  throw new UnreadableSession(answer.missing ? "there is no session with this id" : answer.reason)
}

/** The newest `limit`, and whether there are older ones: one more is asked for than is shown. */
const readNewest = async (sessions: ReadSessionDeps["sessions"], sessionID: string, limit: number): Promise<Page> => {
  const { messages } = unwrap(await sessions.messages(sessionID, limit + 1))
  return { messages: messages.slice(-limit), hasOlder: messages.length > limit }
}

/** The newest `limit` of those before a message. */
const readBefore = async (
  sessions: ReadSessionDeps["sessions"],
  request: { sessionID: string; before: string; limit: number },
  isOver: () => boolean,
): Promise<Page> => {
  const { sessionID, before, limit } = request
  let kept: StoredMessage[] = []
  let isFound = false
  let isWhole = false
  for await (const answer of pagesBack(sessions, sessionID, { size: PAGE_MESSAGES, isOver })) {
    const { messages, isOldest } = unwrap(answer)
    const at = messages.findIndex(({ info }) => info.id === before)
    if (isFound) kept = [...messages, ...kept]
    else if (at >= 0) kept = messages.slice(0, at)
    isFound ||= at >= 0
    isWhole = isOldest
    if (kept.length > limit) break
  }
  if (!isFound && isWhole) throw new UnreadableSession(`it has no message ${before}`)
  if (!isFound) throw new UnreadableSession(`the message ${before} was not reached in time`)
  return { messages: kept.slice(-limit), hasOlder: kept.length > limit || !isWhole }
}

const isSameProject = (own: SessionInfo, other: SessionInfo): boolean =>
  own.projectID === other.projectID && (own.projectID !== "global" || own.directory === other.directory)

const clampLimit = (limit: number | undefined): number =>
  Math.min(Math.max(Math.trunc(limit ?? DEFAULT_LIMIT) || DEFAULT_LIMIT, 1), MAX_LIMIT)

/** The tool read_session. What cannot be read is said in the answer, as the document has it; nothing is thrown. */
export const createReadSession = ({ sessions, records, isSameTask, log, startDeadline }: ReadSessionDeps) => {
  const read = async (reader: string, request: ReadRequest): Promise<ReadResult> => {
    const { sessionID, before, search, tools: detail = "titles" } = request
    if (!SESSION_ID.test(sessionID)) throw new UnreadableSession("this is no session id; one looks like ses_01jxyz…")
    const [own, other] = await Promise.all([sessions.info(reader), sessions.info(sessionID)])
    const info = unwrap(other)
    if (!isSameProject(unwrap(own), info)) throw new UnreadableSession("it belongs to another project")
    const isRelated =
      (await isInChain({ sessions, records }, reader, sessionID)) || (await isSameTask(reader, sessionID))
    if (!isRelated && request.any !== true)
      throw new UnreadableSession(
        "it is not in this session's chain of handoffs and subagents, nor on its task; any: true reads it nevertheless",
      )
    // On 1.2.15 a tool's answer has no title of its own, so that what matters stands in the text as well.
    const title = isRelated ? info.title : `${info.title} (not in this session's chain)`
    const notice = isRelated ? "" : `(Session ${sessionID} “${info.title}” is not in this session's chain.)\n\n`
    const isOver = startDeadline()
    if (search !== undefined && search !== "") {
      const parsed = parseSearch(search)
      if (parsed.kind === "invalid")
        throw new UnreadableSession(`search ${JSON.stringify(search)} is refused: ${parsed.reason}`)
      const found = await searchSession(sessions, sessionID, { find: parsed.find, detail, isOver })
      if (found.kind === "failed") throw new UnreadableSession(found.reason)
      return { title, output: `${notice}${found.text}` }
    }
    const limit = clampLimit(request.limit)
    const page =
      before === undefined || before === ""
        ? await readNewest(sessions, sessionID, limit)
        : await readBefore(sessions, { sessionID, before, limit }, isOver)
    const output = renderTranscript({ ...page, detail, limit, maxLimit: MAX_LIMIT, ...(before ? { before } : {}) })
    return { title, output: `${notice}${output}` }
  }

  /** @param reader the session that asks */
  return async (reader: string, request: ReadRequest): Promise<ReadResult> => {
    try {
      return await read(reader, request)
    } catch (error) {
      if (!(error instanceof UnreadableSession)) throw error
      log.info("session not read", { sessionID: reader, asked: request.sessionID.slice(0, 80), reason: error.message })
      return { title: "not read", output: `Could not read session ${request.sessionID.slice(0, 80)}: ${error.message}` }
    }
  }
}
