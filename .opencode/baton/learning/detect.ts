import type { Part } from "@opencode-ai/sdk"
import { collectUserText, splitLines } from "../host/messages.ts"
import { extractBrief, fenceAfter, parseTask } from "../task/parse.ts"
import { EXCLUSIONS, type LearningType, SIGNALS } from "./signals.ts"
import { contentWords } from "./words.ts"

/** The most common small words. Words that two of the languages share are in none of the lists. */
const ENGLISH =
  "the and is are was it this that these those with for from not but you we they i my our your be been should would will can't don't of to in on at by as or if when what which how there here its it's that's i'm let's has have had an every any all only never always also than then them their so because before after into out up over instead use rather prefer make keep want new same"
const OTHERS =
  "el los las una unos que con para por pero como está esta esto eso más muy también porque otra otro usa usar hace donde ya lo le es en de del al lugar " +
  "der die das und ist nicht ein eine einen dem den mit für auf von zu im am auch aber nur wir ihr sie bitte statt sondern wenn dass kein keine lieber immer falsch nimm gestern " +
  "le la les des une est pas dans pour avec sur ce cette ces qui ne mais ou où je tu vous nous il elle au aux du plutôt toujours jamais autre " +
  "il gli della delle di che non per sono una usa questo questa anche più perché altra altro quella quello già prova " +
  "o os um uma não com para em do da dos das isso este esta você mas mais também jeito está outra vez cliente " +
  "het een van niet en voor met op te maar ook liever graag gebruik plaats deze dit wij jij nee " +
  "och att det som för med inte den till av på är istället nej jag vi använd " +
  "nie jest się na tego tej jak ale innej innego użyj"

const ENGLISH_WORDS = new Set(ENGLISH.split(" "))
const OTHER_WORDS = new Set(OTHERS.split(" "))
for (const word of ENGLISH_WORDS) if (OTHER_WORDS.delete(word)) ENGLISH_WORDS.delete(word)

/** Letters that English words do not have; loan words and names have at most one. */
const FOREIGN_LETTERS = /[^\p{Script=Latin}\P{L}]|[ñãõßąćęłńśźżåæøœ¿¡]|[àâäçèéêëìíîïòóôöùúûü]/giu
const FOREIGN_SHARE = 0.04

/**
 * The English patterns misfire on other texts: "no, use" is Spanish as well.
 *
 * @param text a user's whole message, in any case
 */
const isEnglish = (text: string): boolean => {
  const lower = text.toLowerCase().replaceAll("’", "'")
  const letters = lower.match(/\p{L}/gu)?.length ?? 0
  if (letters === 0 || (lower.match(FOREIGN_LETTERS)?.length ?? 0) > letters * FOREIGN_SHARE) return false
  let [english, other] = [0, 0]
  for (const word of lower.match(/[\p{L}']+/gu) ?? []) {
    if (ENGLISH_WORDS.has(word)) english += 1
    else if (OTHER_WORDS.has(word)) other += 1
  }
  return other < 2 ? other <= english : other * 2 < english
}

/** One sentence: as written, and with quotations and code masked at the same length. */
type Sentence = { readonly text: string; readonly masked: string }

const QUOTED =
  /`[^`\n]{1,300}`|"[^"\n]{1,300}"|“[^”\n]{1,300}”|«[^»\n]{1,300}»|„[^“”\n]{1,300}[“”]|(?<![\p{L}\p{N}])'[^'\n]{2,200}'(?![\p{L}\p{N}])/gu
const BLOT = "¤"

const BULLET = /^\s*(?:[-*+•]|\d{1,2}[.)])\s+/
/** A shorter line was ended by the user, not by the window's width. */
const WRAPPED_CHARACTERS = 60

const ABBREVIATION = /(?:\b(?:e\.g|i\.e|vs|etc|approx|cf|resp|incl|mr|mrs|dr|fig)|\b\p{Lu})\.$/iu
const OPENER =
  /^(?:(?:@\S+|oh|hm+|um+|well|wait|sorry|hey|stop|ok|okay|actually)[\s,.!…-]+)*(?:no+|nope|nah|wrong|wait|actually|stop|that'?s (?:wrong|incorrect|not (?:right|correct|true))|(?:that|this) is (?:wrong|incorrect|not (?:right|correct)))[\s.!…]*$/i

const mask = (text: string): string =>
  text.replace(QUOTED, (quoted) => quoted[0] + BLOT.repeat(quoted.length - 2) + quoted.at(-1))

/** Joins hard-wrapped lines; a bullet begins a new one. */
const joinLines = (lines: readonly string[]): string[] => {
  const joined: string[] = []
  let open = false
  for (const line of lines) {
    const text = line.replace(BULLET, "").trim()
    const last = joined.at(-1)
    if (text === "") open = false
    else if (open && last !== undefined && !BULLET.test(line) && /^\p{Ll}/u.test(text))
      joined[joined.length - 1] = `${last} ${text}`
    else joined.push(text)
    if (text !== "") open = line.length >= WRAPPED_CHARACTERS && !/[.!?:]$/.test(text)
  }
  return joined
}

const split = (text: string): Sentence[] => {
  const masked = mask(text)
  const found: Sentence[] = []
  let start = 0
  for (const { index, 0: end } of masked.matchAll(/[.!?…]+["”')\]]*(?=\s)/g)) {
    const stop = index + end.length
    if (ABBREVIATION.test(masked.slice(Math.max(0, stop - 8), stop))) continue
    found.push({ text: text.slice(start, stop), masked: masked.slice(start, stop) })
    start = stop
  }
  found.push({ text: text.slice(start), masked: masked.slice(start) })
  return found
    .map((sentence) => {
      const lead = sentence.text.length - sentence.text.trimStart().length
      const end = sentence.text.trimEnd().length
      return { text: sentence.text.slice(lead, end), masked: sentence.masked.slice(lead, end) }
    })
    .filter(({ text: one }) => one !== "")
}

/** Joins an opener with the next sentence: "No. Use tabs." is one statement. */
const withOpeners = (sentences: readonly Sentence[]): Sentence[] => {
  const glued: Sentence[] = []
  let opener: Sentence | undefined
  for (const sentence of sentences) {
    const whole: Sentence = opener
      ? { text: `${opener.text} ${sentence.text}`, masked: `${opener.masked} ${sentence.masked}` }
      : sentence
    if (OPENER.test(sentence.masked)) opener = whole
    else {
      glued.push(whole)
      opener = undefined
    }
  }
  return opener ? [...glued, opener] : glued
}

/** @param lines from `handwrittenLines` */
const splitSentences = (lines: readonly string[]): Sentence[] =>
  joinLines(lines).flatMap((text) => withOpeners(split(text)))

/** Messages typed by hand are shorter; beyond this the rest is a paste that no rule below recognised. */
const HAND_TYPED_CHARACTERS = 6_000

/** Paragraphs typed by hand are shorter; it also bounds the input of the patterns below. */
const LINE_CHARACTERS = 2_000

/** Lines written by a program, a diff, a shell or a chat log. */
const MACHINE_LINES: readonly RegExp[] = [
  /^\s*>/,
  /^\s*\|.*\|\s*$/,
  /^(?: {4}|\t)/,
  /^\s*\$ \S/,
  /^\s*(?:\/\/|\/\*|<!--)/,
  /^\s*(?:diff --git|@@ |\+\+\+ |--- |index [0-9a-f]{7})/,
  /^[+-](?! |$)/,
  /^[+-]\s*(?:\/\/|const |let |var |import |export |return |def |class )/,
  /^\s*at .+[(:]\S*:\d+/,
  /^\s*Traceback \(|^\s*File ".+", line \d+/,
  /^\s*[\w.]*(?:Error|Exception|Warning)\b:? /,
  /^\s*\(node:\d+\)/,
  /^\s*(?:npm|yarn|pnpm|pip|cargo|make|go|bash|sh|zsh|git)(?: (?:ERR|WARN)!?|:|\[\d+\]:)/,
  /^\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d/,
  /^\s*\[?\d{1,2}:\d\d(?::\d\d)?\]?\s/,
  /^\s*\[?(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL)\]?[\s:]/,
  /^\s*(?:error|warning)(?: TS\d+|\[\w+\])?: /,
  /^\s*[\w./@-]+\.\w{1,5}:\d+(?::\d+)?\b/,
  /^\s*(?:const|let|var|import|export|function|class|def|return|public|private|#include)\s+\S.*[;{(=]/,
  /^\s*[\w$.]+\(.*\)\s*[;{]?\s*$/,
  /^\s*[{}[\]();,]+\s*$/,
  /^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH|FROM|RUN|COPY|ENV)\s/,
  /^\s*(?:commit [0-9a-f]{7,}|Author: )/,
  /^\s*(?:From|To|Cc|Subject|Date|Sent): /,
  /^\s*[A-Z][\w.-]{1,20}(?: [A-Z][\w.-]{1,20})?: \S/,
  /^#{1,6} /,
]
/** Words that users write before a colon, unlike the chat log's `Tom: …` above. */
const OWN_LABELS =
  /^\s*(?:Decision|Note|Important|Remember|Thanks|Ok|Okay|Also|One thing|Two things|PS|FYI|Please|Heads up|Reminder|Correction|Rule)\b/i

/** Starts of forwarded text: everything after it is skipped. */
const FORWARDED =
  /^\s*(?:-{3,} ?(?:original|forwarded)|on .{5,80} wrote:|from: \S+@|continuing work from session ses_)|\b(?:e-?mail|ticket|prompt|transcript|conversation|article|issue|spec|readme|\S+\.md)\b[^.!?]{0,60}:\s*$/i
/** Announces a block that is mostly quoted, unless the line announces a list of the user's own. */
const QUOTING = /:\s*$/
const OWN_LISTS = /\b(?:things?|points?|changes|requests?|wishes|rules?|notes?|please|also|reminders?)\s*:\s*$/i
const OPENING_TAG = /^\s*<([a-z][\w-]*)(?:\s[^>]*)?>/i

const closingTag = (line: string): string | undefined => {
  const name = OPENING_TAG.exec(line)?.[1]
  return name === undefined ? undefined : `</${name}`
}

/** The part to skip: the next block of lines, or everything up to a closing tag. */
type Skipping = { readonly kind: "block"; readonly begun: boolean } | { readonly kind: "tag"; readonly closing: string }

/** @returns what is still to be skipped after a skipped line */
const skipLine = (line: string, skipping: Skipping): Skipping | undefined => {
  if (skipping.kind === "tag") return line.includes(skipping.closing) ? undefined : skipping
  if (line.trim() !== "") return { kind: "block", begun: true }
  return skipping.begun ? undefined : skipping
}

/** @returns what is to be skipped after a line that was kept */
const introducedBy = (line: string): Skipping | undefined => {
  const closing = closingTag(line)
  if (closing !== undefined && !line.includes(closing)) return { kind: "tag", closing }
  return QUOTING.test(line) && !OWN_LISTS.test(line) ? { kind: "block", begun: false } : undefined
}

const isShort = (line: string): boolean => line.length <= LINE_CHARACTERS

const isMachineLine = (line: string): boolean =>
  !isShort(line) || (MACHINE_LINES.some((pattern) => pattern.test(line)) && !OWN_LABELS.test(line))

/** False for lines that are mostly symbols: code, a table, a hash, base64. */
const isProse = (line: string): boolean => {
  const bare = line.replace(/`[^`]*`/g, "")
  const letters = bare.match(/[\p{L}\s,.'’!?-]/gu)?.length ?? 0
  return letters >= bare.length * 0.75 && !/\S{80}/.test(bare)
}

/**
 * Returns the lines of a message that the user typed, and the blank lines between paragraphs: without role prompts, code fences,
 * quotations, pasted logs, diffs, e-mails, chats and tagged blocks. Linear in the length of the text.
 *
 * Doubtful lines are dropped: dropping one loses a learning, keeping one may learn another author's rule.
 *
 * @param text user-authored text from `collectUserText`
 */
const handwrittenLines = (text: string): string[] => {
  const kept: string[] = []
  let characters = 0
  let fence = ""
  let skipping: Skipping | undefined
  for (const line of splitLines(extractBrief(text))) {
    if (characters > HAND_TYPED_CHARACTERS) break
    const before = fence
    fence = fenceAfter(line, fence)
    if (before !== "" || fence !== "") continue
    if (skipping) {
      skipping = skipLine(line, skipping)
      continue
    }
    if (isShort(line) && FORWARDED.test(line)) break
    if (isShort(line)) skipping = introducedBy(line)
    if (line.trim() === "") kept.push("")
    else if (closingTag(line) === undefined && !isMachineLine(line) && isProse(line)) {
      kept.push(line)
      characters += line.length
    }
  }
  return kept
}

type Detected = { readonly type: LearningType; readonly sentence: string }

type Detection = {
  /** In the order of the message. */
  readonly learnings: readonly Detected[]
  /** The user objects to the work done, perhaps in words that teach nothing ("That's wrong."). */
  readonly objects: boolean
}

const MAX_CHARACTERS = 400
const MIN_WORDS = 3
const MAX_WORDS = 60

const FILLERS =
  /^(?:(?:ok|okay|k|well|so|and|but|oh|hm+|um+|uh|hey|hi|hello|yes|yeah|yep|sure|right|great|good|nice|thanks|thank you|thx|perfect|cool|sorry|wait|please|pls|plz|also|btw|almost|looks good|one (?:more )?thing|that'?s better|@\S+|then)(?:[\s,.!:…–—-]+|$))+/

/** Lower case, one kind of apostrophe, no fillers, common typos corrected. */
const normalise = (masked: string): string => {
  const text = masked
    .toLowerCase()
    .replaceAll("’", "'")
    .replace(/\bdont\b/g, "don't")
    .replace(/\bdidnt\b/g, "didn't")
    .replace(/\b(?:plz|pls)\b/g, "please")
    .replace(/\s+/g, " ")
    .trim()
  return text.replace(FILLERS, "")
}

const NOTHING: Detection = { learnings: [], objects: false }

const isExcluded = (text: string): boolean => EXCLUSIONS.some((pattern) => pattern.test(text))

const judge = ({ text, masked }: Sentence): { type: LearningType; teaches: boolean } | undefined => {
  if (text.length > MAX_CHARACTERS) return undefined
  const plain = normalise(masked)
  const bare = plain.replace(/[.!…,;:]+$/, "")
  const found = SIGNALS.find(({ pattern }) => pattern.test(bare))
  if (!found || isExcluded(plain)) return undefined
  const words = text.split(/\s+/).length
  const teaches = words >= MIN_WORDS && words <= MAX_WORDS && contentWords(text).length > 0
  return { type: found.type, teaches }
}

/**
 * Detects what one user message teaches. Pure; linear in the length of the text.
 *
 * @param text user-authored text of one message, from `collectUserText`
 */
export const detect = (text: string): Detection => {
  // A message that sets a task is stored with the task, and is often written by a program.
  if (parseTask(text) !== undefined) return NOTHING
  const lines = handwrittenLines(text)
  if (!isEnglish(lines.join("\n"))) return NOTHING
  const judged = splitSentences(lines).map((sentence) => ({ sentence: sentence.text, ...judge(sentence) }))
  return {
    learnings: judged.flatMap(({ sentence, type, teaches }) =>
      type !== undefined && teaches === true ? [{ type, sentence }] : [],
    ),
    objects: judged.some(({ type }) => type === "correction"),
  }
}

/** Asks without loading the rest of the feature. */
export const isTeaching = (parts: readonly Part[]): boolean => detect(collectUserText(parts)).learnings.length > 0
