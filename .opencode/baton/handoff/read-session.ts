import type { Log } from "../host/log.ts"
import { type RunProcess, runScript } from "../host/process.ts"
import { bundleRoot } from "../host/project.ts"
import { messagePages, type Result, type SessionInfo, type Sessions, type StoredMessage } from "../host/sessions.ts"
import { counted, cutText, cutTextStart } from "../host/text.ts"
import { folded, hasWords, splitWords } from "../host/words.ts"
import { type ChainDeps, isRelated } from "./records.ts"
import { MAX_TRANSCRIPT_BYTES, renderMessage, renderTranscript, type ToolDetail } from "./transcript.ts"

class UnreadableSession extends Error {
  override readonly name = "UnreadableSession"
}

const unwrap = <T>(answer: Result<T>): T => {
  if (answer.kind === "ok") return answer.value
  throw new UnreadableSession(answer.missing ? "there is no session with this id" : answer.reason)
}

/** Finds the first match in a line: its start, or -1. */
type LineSearch = (line: string) => number

type ParsedSearch =
  /** `words`: the message must hold all of them, in any order. */
  | { readonly kind: "text"; readonly find: LineSearch; readonly words?: readonly string[] }
  | { readonly kind: "pattern"; readonly pattern: string; readonly flags: string }
  | { readonly kind: "invalid"; readonly reason: string }

const SLASHED = /^\/(.+)\/([imsu]*)$/s
const MAX_PATTERN_CHARACTERS = 500
/** A pattern searches at most this much of a line. */
const MAX_SEARCHED_LINE = 2_000

/** `/pattern/i` is a regular expression; anything else is plain text, matched regardless of case. */
export const parseSearch = (search: string): ParsedSearch => {
  const [, pattern, flags = ""] = SLASHED.exec(search) ?? []
  if (pattern === undefined) {
    const wanted = search.toLowerCase()
    return { kind: "text", find: (line) => line.toLowerCase().indexOf(wanted) }
  }
  if (pattern.length > MAX_PATTERN_CHARACTERS)
    return {
      kind: "invalid",
      reason: `the pattern has ${pattern.length} characters, more than ${MAX_PATTERN_CHARACTERS}`,
    }
  try {
    new RegExp(pattern, flags)
    return { kind: "pattern", pattern, flags }
  } catch (error) {
    return {
      kind: "invalid",
      reason: `it is no regular expression (${error instanceof Error ? error.message : String(error)})`,
    }
  }
}

/** Lines with one of the words, in messages that have them all. @param query words between blanks */
export const parseWords = (query: string): ParsedSearch => {
  const words = splitWords(query)
  if (words.length === 0) return { kind: "invalid", reason: "it has no word" }
  const find = (line: string): number => {
    const searched = folded(line)
    const places = words.map((word) => searched.indexOf(word)).filter((at) => at >= 0)
    return places.length === 0 ? -1 : Math.min(...places)
  }
  return { kind: "text", find, words }
}

/** Reads a pattern and lines, and prints the place of the first match in each. */
const MATCH = `let text = ""
process.stdin.setEncoding("utf8").on("data", (part) => { text += part }).on("end", () => {
  const { pattern, flags, lines } = JSON.parse(text)
  const expression = new RegExp(pattern, flags)
  console.log(JSON.stringify(lines.map((line) => line.search(expression))))
})`
const PATTERN_DEADLINE_MS = 1_000

/**
 * Matches a pattern in a process of its own, which can be ended: a regular expression may run without end, and Bun ends no
 * thread that runs one.
 *
 * @throws UnreadableSession when it takes longer than a second
 */
const matchLines = async (
  run: RunProcess,
  { pattern, flags }: Extract<ParsedSearch, { kind: "pattern" }>,
  lines: readonly string[],
): Promise<LineSearch> => {
  const wanted = [...new Set(lines.map((line) => cutText(line, MAX_SEARCHED_LINE)))]
  const stdin = JSON.stringify({ pattern, flags, lines: wanted })
  const outcome = await runScript(run, MATCH, { cwd: bundleRoot, deadlineMs: PATTERN_DEADLINE_MS, stdin })
  if (outcome.kind === "timed-out")
    throw new UnreadableSession(
      `the pattern took longer than ${PATTERN_DEADLINE_MS} ms; use a plain text or a simpler one`,
    )
  const places: unknown = outcome.kind === "exited" && outcome.exitCode === 0 ? JSON.parse(outcome.stdout) : undefined
  if (!Array.isArray(places)) throw new UnreadableSession("patterns cannot be matched here; use a plain text")
  const found = new Map(wanted.map((line, index) => [line, Number(places[index])]))
  return (line) => found.get(cutText(line, MAX_SEARCHED_LINE)) ?? -1
}

const CONTEXT_LINES = 2
const MAX_MATCHES = 40
const LINE_CHARACTERS = 400
/** Each page of a pattern costs a process. */
const SEARCH_PAGE_MESSAGES = { text: 100, pattern: 500 }

const cutLine = (line: string, at: number): string => {
  if (line.length <= LINE_CHARACTERS) return line
  const start = Math.max(0, at - LINE_CHARACTERS / 2)
  // Neither end of the cut is half a surrogate pair.
  const shown = cutText(cutTextStart(line, line.length - start), LINE_CHARACTERS)
  return `${start > 0 ? "…" : ""}${shown}…`
}

type Match = { readonly messageID: string; readonly heading: string; readonly lines: readonly string[] }

/** The matching lines of one message with the lines around them; overlapping ones are shown once. */
const matchesIn = (messageID: string, text: string, find: LineSearch): Match[] => {
  const [heading = "", ...lines] = text.split("\n")
  const matches: Match[] = []
  let shownTo = -1
  for (const [index, line] of lines.entries()) {
    if (index <= shownTo) continue
    const at = find(line)
    if (at < 0) continue
    const from = Math.max(shownTo + 1, index - CONTEXT_LINES)
    shownTo = index + CONTEXT_LINES
    const around = lines.slice(from, shownTo + 1).map((each, offset) => {
      const isMatch = from + offset === index
      return `${isMatch ? "> " : "  "}${cutLine(each, isMatch ? at : 0)}`
    })
    matches.push({ messageID, heading, lines: around })
  }
  return matches
}

/** Returns as many of the newest matches as fit into a tool's answer, oldest first. @param matches newest first */
const newestThatFit = (matches: readonly Match[]): string[] => {
  const texts: string[] = []
  let bytes = 0
  for (const { messageID, heading, lines } of matches.slice(0, MAX_MATCHES)) {
    const text = [`${heading} (${messageID})`, ...lines].join("\n")
    bytes += Buffer.byteLength(text) + 2
    if (bytes > MAX_TRANSCRIPT_BYTES) break
    texts.unshift(text)
  }
  return texts
}

/** Searches a session from the newest message back, page by page. @param shouldStop asked before each page */
const searchSession = async (
  sessions: Pick<Sessions, "messages">,
  sessionID: string,
  {
    prepare,
    words = [],
    size,
    detail,
    shouldStop,
  }: {
    prepare: (lines: readonly string[]) => Promise<LineSearch>
    /** Messages without one of them are passed by. */
    words?: readonly string[] | undefined
    /** Messages of a page. */
    size: number
    detail: ToolDetail
    shouldStop: () => boolean
  },
): Promise<string> => {
  const matches: Match[] = []
  let searched = 0
  let isWhole = false
  for await (const answer of messagePages(sessions, sessionID, { size, shouldStop })) {
    const { messages, isOldest } = unwrap(answer)
    const texts = messages
      .map((message) => ({ id: message.info.id, text: renderMessage(message, detail) ?? "" }))
      // Without the heading.
      .filter(({ text }) => hasWords(cutTextStart(text, text.length - text.indexOf("\n")), words))
    const find = await prepare(texts.flatMap(({ text }) => text.split("\n")))
    for (const { id, text } of texts.toReversed()) matches.push(...matchesIn(id, text, find).toReversed())
    searched += messages.length
    isWhole = isOldest
    if (matches.length >= MAX_MATCHES) break
  }
  const texts = newestThatFit(matches)
  const more = matches.length > texts.length || !isWhole
  const count = `${counted(texts.length, "match", "matches")} in the newest ${searched} messages`
  const footer = more
    ? `(${count}; older ones were not searched. Use a narrower search to see more.)`
    : `(${count}, which is the whole session. Use before: "<message id>" to read around one.)`
  return [...texts, footer].join("\n\n")
}

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 500

export type ReadRequest = {
  readonly sessionID: string
  readonly limit?: number | undefined
  readonly before?: string | undefined
  readonly search?: string | undefined
  /** All of them must be in a message; `search` comes before them. */
  readonly words?: string | undefined
  readonly tools?: ToolDetail | undefined
  readonly any?: boolean | undefined
}

type ReadResult = { readonly title: string; readonly output: string }

type ReadSessionDeps = {
  sessions: Pick<Sessions, "info" | "messages">
  records: ChainDeps["records"]
  isSameTask: (sessionID: string, other: string) => Promise<boolean>
  run: RunProcess
  log: Pick<Log, "info">
  /** Starts the deadline of one call. @returns a function that tells whether it has passed */
  startDeadline: () => () => boolean
}

const SESSION_ID = /^ses_[A-Za-z0-9]{1,64}$/
const PAGE_MESSAGES = 200

type Page = { messages: readonly StoredMessage[]; hasOlder: boolean }

/** Reads the newest `limit` messages. Asks for one more, to learn whether there are older ones. */
const readNewest = async (sessions: ReadSessionDeps["sessions"], sessionID: string, limit: number): Promise<Page> => {
  const { messages } = unwrap(await sessions.messages(sessionID, limit + 1))
  return { messages: messages.slice(-limit), hasOlder: messages.length > limit }
}

const readBefore = async (
  sessions: ReadSessionDeps["sessions"],
  request: { sessionID: string; before: string; limit: number },
  shouldStop: () => boolean,
): Promise<Page> => {
  const { sessionID, before, limit } = request
  let kept: StoredMessage[] = []
  let isFound = false
  let isWhole = false
  for await (const answer of messagePages(sessions, sessionID, { size: PAGE_MESSAGES, shouldStop })) {
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

/** The tool read_session. It does not throw when a session cannot be read: the answer gives the reason. */
export const createReadSession = ({ sessions, records, isSameTask, run, log, startDeadline }: ReadSessionDeps) => {
  const read = async (reader: string, request: ReadRequest): Promise<ReadResult> => {
    const { sessionID, before, search, words, tools: detail = "titles" } = request
    if (!SESSION_ID.test(sessionID)) throw new UnreadableSession("this is no session id; one looks like ses_01jxyz…")
    const [own, other] = await Promise.all([sessions.info(reader), sessions.info(sessionID)])
    const info = unwrap(other)
    if (!isSameProject(unwrap(own), info)) throw new UnreadableSession("it belongs to another project")
    const isOwn = (await isRelated({ sessions, records }, reader, sessionID)) || (await isSameTask(reader, sessionID))
    if (!isOwn && request.any !== true)
      throw new UnreadableSession(
        "it is not in this session's chain of handoffs and subagents, nor on its task; any: true reads it nevertheless",
      )
    // On 1.2.15 a tool's answer has no title, so the text repeats what matters.
    const title = isOwn ? info.title : `${info.title} (not in this session's chain)`
    const notice = isOwn ? "" : `(Session ${sessionID} “${info.title}” is not in this session's chain.)\n\n`
    const deadlinePassed = startDeadline()
    const wanted = search || words
    if (wanted !== undefined && wanted !== "") {
      const parsed = search ? parseSearch(search) : parseWords(wanted)
      if (parsed.kind === "invalid")
        throw new UnreadableSession(`search ${JSON.stringify(wanted)} is refused: ${parsed.reason}`)
      const prepare = async (lines: readonly string[]): Promise<LineSearch> =>
        parsed.kind === "text" ? parsed.find : matchLines(run, parsed, lines)
      const size = SEARCH_PAGE_MESSAGES[parsed.kind]
      const sought = parsed.kind === "text" ? parsed.words : undefined
      const how = { prepare, words: sought, size, detail, shouldStop: deadlinePassed }
      const found = await searchSession(sessions, sessionID, how)
      return { title, output: `${notice}${found}` }
    }
    const limit = clampLimit(request.limit)
    const page =
      before === undefined || before === ""
        ? await readNewest(sessions, sessionID, limit)
        : await readBefore(sessions, { sessionID, before, limit }, deadlinePassed)
    const output = renderTranscript({ ...page, detail, limit, maxLimit: MAX_LIMIT, before: before || undefined })
    return { title, output: `${notice}${output}` }
  }

  /** @param reader the session that calls the tool */
  return async (reader: string, request: ReadRequest): Promise<ReadResult> => {
    try {
      return await read(reader, request)
    } catch (error) {
      if (!(error instanceof UnreadableSession)) throw error
      log.info("session not read", { sessionID: reader, asked: cutText(request.sessionID, 80), reason: error.message })
      return { title: "not read", output: `Could not read session ${cutText(request.sessionID, 80)}: ${error.message}` }
    }
  }
}
