import { DRAFT_BEGIN, OWN_COMMAND_TEXT, splitLines } from "../host/messages.ts"
import type { Parsed, Zod } from "../host/schema.ts"
import { redactKeys } from "../host/secrets.ts"
import { counted, cutText } from "../host/text.ts"
import { extractBrief, fenced, namesOnlyATask } from "./parse.ts"

export const userWordsSchema = (z: Zod) =>
  z
    .object({
      sessionID: z.string(),
      messageID: z.string(),
      /** ISO 8601, UTC. */
      at: z.string(),
      /** Verbatim, without keys. */
      text: z.string(),
    })
    .brand<"UserWords">()

/**
 * What a person typed in one message of a root session. `toUserWords` alone makes it, so that nothing else can be shown as the
 * user's (docs/adr/0021).
 */
export type UserWords = Parsed<typeof userWordsSchema>

/** A user's message of a root session. */
export type TypedMessage = {
  readonly sessionID: string
  readonly messageID: string
  /** Epoch ms. */
  readonly createdAt: number
  /** As `collectUserText` gives it. */
  readonly text: string
  /** The command whose template the text is, as the user typed it. */
  readonly command?: { readonly name: string; readonly arguments: string } | undefined
}

/** A longer message is cut: it is a paste. */
const MESSAGE_CHARACTERS = 24_000
/** Keys are looked for beyond the cut, so that no half of one stays. */
const SEARCHED_CHARACTERS = 2 * MESSAGE_CHARACTERS

/** The facts that end a draft of `/handoff`, in a fence. */
export const DRAFT_FACTS = "What the session before shows (gathered by program):"

/** Keeps the text before a draft and behind it: the draft itself is a model's and the program's. */
const withoutDraft = (text: string): string => {
  const start = text.search(DRAFT_BEGIN)
  if (start < 0) return text
  const facts = text.indexOf(DRAFT_FACTS, start)
  const [, fence = ""] = /^\s*(`{3,})text\n/.exec(text.slice(facts + DRAFT_FACTS.length)) ?? []
  const end = facts < 0 || fence === "" ? -1 : text.indexOf(`\n${fence}`, text.indexOf(fence, facts) + fence.length)
  const behind = end < 0 ? "" : text.slice(end + 1 + fence.length)
  return [text.slice(0, start), behind]
    .map((part) => part.trim())
    .join("\n")
    .trim()
}

const typedText = ({ text, command }: TypedMessage): string => {
  if (!command) return OWN_COMMAND_TEXT.test(text.trim()) ? "" : withoutDraft(extractBrief(text)).trim()
  const given = command.arguments.trim()
  return given === "" ? "" : `/${command.name} ${given}`
}

/** @returns undefined for a message without words of the user's, or with nothing but the name of a task */
export const toUserWords = (message: TypedMessage): UserWords | undefined => {
  const { sessionID, messageID, createdAt } = message
  const typed = typedText(message)
  const kept = redactKeys(cutText(typed, SEARCHED_CHARACTERS))
  const text =
    typed.length > MESSAGE_CHARACTERS
      ? `${cutText(kept, MESSAGE_CHARACTERS)}\n[cut from ${typed.length} characters]`
      : kept
  if (text === "" || splitLines(text).every(namesOnlyATask)) return undefined
  return { sessionID, messageID, at: new Date(createdAt).toISOString(), text } as UserWords
}

/** The user's words on a task. */
export type TaskWords = {
  /** Oldest first; the first is that which began the task. */
  readonly words: readonly UserWords[]
  /** Number of those between the first and the next that are not kept. */
  readonly leftOut: number
}

export const NO_WORDS: TaskWords = { words: [], leftOut: 0 }

/** Of all that is kept for a session. */
const KEPT_CHARACTERS = 64_000

const isSame = (one: UserWords, other: UserWords): boolean =>
  one.messageID === other.messageID && one.sessionID === other.sessionID

const isCommand = ({ text }: UserWords): boolean => text.startsWith("/")

/** A fork's copy of a message has its time. Of a command it holds the template, where the original's has what was typed. */
const isForked = (one: UserWords, other: UserWords): boolean =>
  one.sessionID !== other.sessionID &&
  one.at === other.at &&
  (one.text === other.text || isCommand(one) || isCommand(other))

const eachOnce = (all: readonly UserWords[]): UserWords[] => {
  const kept: UserWords[] = []
  for (const one of all) {
    const at = kept.findIndex((other) => isSame(one, other) || isForked(one, other))
    const known = kept[at]
    if (!known) kept.push(one)
    else if (!isSame(one, known) && isCommand(one)) kept[at] = { ...known, text: one.text }
  }
  return kept
}

/** Adds words in the order of their time, each message once; the oldest but the first make room. */
export const withWords = ({ words, leftOut }: TaskWords, added: readonly UserWords[]): TaskWords => {
  const kept = eachOnce([...words, ...added])
  kept.sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0))
  let size = kept.reduce((sum, { text }) => sum + text.length, 0)
  let dropped = 0
  while (size > KEPT_CHARACTERS && kept.length > 2) {
    const [oldest] = kept.splice(1, 1)
    size -= oldest?.text.length ?? 0
    dropped++
  }
  return { words: kept, leftOut: leftOut + dropped }
}

export const WORDS_HEADING = "The user's own words, newest first"
const OUTRANK = "Later words outrank earlier ones, and all of them the task's text and any summary."

const shownMinute = (at: string): string => `${at.slice(0, 16).replace("T", " ")} UTC`

const renderOne = ({ at, text }: UserWords): string => `${shownMinute(at)}:\n${fenced(text)}`

const renderAll = (heading: string, shown: readonly string[], first: string | undefined, leftOut: number): string =>
  [
    `${heading}\n${OUTRANK}`,
    ...shown,
    ...(leftOut === 0 ? [] : [`(${counted(leftOut, "older message")} left out)`]),
    ...(first === undefined ? [] : [first]),
  ].join("\n\n")

/** Cuts the newest message, for the case that not even that has room. */
const renderCut = (heading: string, newest: UserWords, leftOut: number, fits: (text: string) => boolean): string => {
  const { length } = newest.text
  const withLength = (kept: number): string => {
    const shown = cutText(newest.text, kept)
    const text = `${shown}\n[cut to ${shown.length} of ${length} characters]`
    return renderAll(heading, [renderOne({ ...newest, text })], undefined, leftOut)
  }
  let [low, high] = [0, length]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (fits(withLength(middle))) low = middle
    else high = middle - 1
  }
  return low === 0 ? "" : withLength(low)
}

/**
 * Renders the user's words, the newest whole and first, then the first of the task, then older ones as far as there is room.
 *
 * @param heading with its marks, as `### …`
 * @param fits asked for a text that might be given
 * @returns "" for none
 */
export const renderUserWords = (
  { words, leftOut }: TaskWords,
  { heading, fits = () => true }: { heading: string; fits?: (text: string) => boolean },
): string => {
  const [newest, ...older] = words.toReversed()
  if (!newest) return ""
  const first = older.pop()
  const total = leftOut + older.length
  const render = (isFirstShown: boolean, more: readonly UserWords[] = []): string => {
    const isMissing = first !== undefined && !isFirstShown
    const shown = [newest, ...more].map(renderOne)
    const firstText = first && isFirstShown ? renderOne(first) : undefined
    return renderAll(heading, shown, firstText, total - more.length + (isMissing ? 1 : 0))
  }
  const isFirstShown = first !== undefined && fits(render(true))
  if (!fits(render(isFirstShown))) return renderCut(heading, newest, total + (first ? 1 : 0), fits)
  let count = 0
  while (count < older.length && fits(render(isFirstShown, older.slice(0, count + 1)))) count++
  return render(isFirstShown, older.slice(0, count))
}
