import type { Part } from "@opencode-ai/sdk"
import { collectUserText, splitLines } from "../host/messages.ts"
import { foldText } from "../host/text.ts"
import { extractBrief, fenceAfter, parseTask } from "../task/parse.ts"
import { createRuleFinder } from "./languages.ts"
import type { LearningType, Rules } from "./signals.ts"
import { contentWords } from "./words.ts"

/** One sentence: as written, and with quotations and code masked at the same length. */
type Sentence = { readonly text: string; readonly masked: string }

/** Of one line, which has 2,000 characters at most. */
const QUOTED =
  /`[^`\n]{1,300}`|"[^"\n]{1,2000}"|“[^”\n]{1,2000}”|«[^»\n]{1,2000}»|„[^“”\n]{1,2000}[“”]|「[^」\n]{1,2000}」|(?<![\p{L}\p{N}])'[^'\n]{2,200}'(?![\p{L}\p{N}])/gu
/** Begins a quotation that is not closed in its line: nothing is closed before it, and a word follows. */
const OPENING_MARK = /(?<![\p{L}\p{N}])(["“«„「])(?=[\p{L}\p{N}>*-])/u
const ANY_MARK = /["“”«»„「」]/
const CLOSING_MARKS: Readonly<Record<string, RegExp>> = {
  '"': /"/,
  "“": /”/,
  "«": /»/,
  "„": /[“”]/,
  "「": /」/,
}
const BLOT = "¤"

const BULLET = /^\s*(?:[-*+•]|\d{1,2}[.)])\s+/
/** A shorter line was ended by the user, not by the window's width. */
const WRAPPED_CHARACTERS = 60

const ABBREVIATION = /(?:\b(?:e\.g|i\.e|vs|etc|approx|cf|resp|incl|mr|mrs|dr|fig)|\b\p{Lu})\.$/iu
const OPENER =
  /^(?:(?:@\S+|oh|hm+|um+|well|wait|sorry|hey|stop|ok|okay|actually)[\s,.!…-]+)*(?:no+|nope|nah|wrong|wait|actually|stop|nein|nee|falsch|stopp|halt|so nicht|nicht so|non|faux|pas comme ça|así no|eso no|que no|that'?s (?:wrong|incorrect|not (?:right|correct|true))|(?:that|this) is (?:wrong|incorrect|not (?:right|correct)))[\s.!…]*$/i

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
  for (const { index, 0: end } of masked.matchAll(/[.!?…]+["”')\]]*(?=\s)|[。！？]+[”』」]*/g)) {
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

/** A message typed by hand has fewer; a longer one is a list of single words. */
const HAND_TYPED_SENTENCES = 300

/** Paragraphs typed by hand are shorter; it also bounds the input of the patterns below. */
const LINE_CHARACTERS = 2_000

const isShort = (line: string): boolean => line.length <= LINE_CHARACTERS

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
  /^\s*(?:Decision|Note|Important|Remember|Thanks|Ok|Okay|Also|One thing|Two things|PS|FYI|Please|Heads up|Reminder|Correction|Rule|No|Nope|Wichtig|Hinweis|Achtung|Bitte|Regel|Entscheidung|Nein|Importante|Nota|Por favor|Regla|Decisi[oó]n|Attention|Important|Règle|Décision|Non|注意|重要|决定|规则)(?![\p{L}\p{N}])/iu

/** A line that someone said in a chat: `bob: …`, `小王：…`. */
const SPEAKER = /^\s*(?:@?\p{L}[\p{L}\d._-]{0,19}(?: \p{L}[\p{L}.-]{0,19})?) ?[:：]\s?\S/u
const CHINESE_SPEAKER =
  /^\s*(?!注意|重要|决定|规则|提醒|备注|约定|另外|记住|说明|更正|纠正|要求|规范|不对|不是|代码|提交|注释)\p{Script=Han}{2,4}[：:]/u
/** `Lisa (10:41): …` */
const SPOKEN_AT = /^\s*@?\p{L}[\p{L} ._-]{0,30}[([]\d{1,2}[:.h]\d\d[^\])]{0,6}[)\]]\s*[:：-]/u
/** `Lisa, 10:41`: what follows was said by Lisa. */
const SPEAKER_AT =
  /^\s*(?:\[?@?\p{L}[\p{L} ._-]{0,30}[,，]?\s+(?:[-—–|(]\s*)?(?:(?:at|um|à) )?\d{1,2}[:.h]\d\d(?: ?[ap]\.?m\.?)?[\])]?:?\s*)$/iu

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

/**
 * Returns the lines that belong to quotations of several lines, with the lines in which these begin and end. A mark that is closed in
 * no later line quotes nothing; nor does one at the message's start, where `opencode run` puts its own.
 */
const quotationLines = (lines: readonly string[]): ReadonlySet<number> => {
  const found = new Set<number>()
  const marked = lines.flatMap((line, at) => (ANY_MARK.test(line) ? at : []))
  if (marked.length < 2) return found
  /** The last line that closes a quotation of each kind. */
  const lastClosing = new Map(
    Object.entries(CLOSING_MARKS).map(([mark, closing]) => [
      mark,
      marked.findLast((at) => closing.test(lines[at] ?? "")) ?? -1,
    ]),
  )
  let open: RegExp | undefined
  for (const [at, line] of lines.entries()) {
    if (open) {
      found.add(at)
      if (open.test(line)) open = undefined
      continue
    }
    if (!isShort(line)) continue
    const text = at === 0 ? line.replace(/^\s*"/, "") : line
    const mark = OPENING_MARK.exec(text.replace(QUOTED, ""))?.[1]
    if (mark === undefined || (lastClosing.get(mark) ?? -1) <= at) continue
    open = CLOSING_MARKS[mark]
    found.add(at)
  }
  return found
}

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

const isMachineLine = (line: string): boolean =>
  !isShort(line) ||
  CHINESE_SPEAKER.test(line) ||
  SPOKEN_AT.test(line) ||
  (MACHINE_LINES.some((pattern) => pattern.test(line)) && !OWN_LABELS.test(line))

const isSpoken = (line: string): boolean => isShort(line) && SPEAKER.test(line) && !OWN_LABELS.test(line)

/** False for lines that are mostly symbols: code, a table, a hash, base64. */
const isProse = (line: string): boolean => {
  const bare = line.replace(/`[^`]*`/g, "")
  const letters = bare.match(/[\p{L}\s,.'’!?，。！？、：；“”（）¿¡-]/gu)?.length ?? 0
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
  const lines = splitLines(extractBrief(text))
  const isChat = lines.filter(isSpoken).length > 1
  const quoted = quotationLines(lines)
  for (const [at, line] of lines.entries()) {
    if (characters > HAND_TYPED_CHARACTERS) break
    const before = fence
    fence = fenceAfter(line, fence)
    if (before !== "" || fence !== "") continue
    if (skipping) {
      skipping = skipLine(line, skipping)
      continue
    }
    if (isShort(line) && (FORWARDED.test(line) || SPEAKER_AT.test(line))) break
    if (quoted.has(at) || (isChat && isSpoken(line))) continue
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

/** Lower case, without accents, one kind of apostrophe, no fillers, common typos corrected. */
const normalise = (masked: string, { fillers, otherNo }: Rules): string =>
  foldText(masked)
    .replace(/\bdont\b/g, "don't")
    .replace(/\bdidnt\b/g, "didn't")
    .replace(/\b(?:plz|pls)\b/g, "please")
    .replace(/\s+/g, " ")
    .trim()
    .replace(fillers, "")
    .replace(otherNo, "no, ")

const NOTHING: Detection = { learnings: [], objects: false }

/** Names people, their addresses or telephone numbers: what is said of them is no one else's. */
const ABOUT_PEOPLE = [
  /[\w.+-]@[\w-]+\.\w/,
  /(?<![\w.])\+?\d(?:[ ()/-]?\d){7,}(?![\w.])/,
  /\b(?:[Cc]all|[Tt]ext|[Pp]hone|[Rr]ing|[Pp]ing|[Ee]-?mail|[Mm]ail|[Mm]essage|[Cc]ontact|[Cc]c|[Aa]sk|[Tt]ell|[Ii]nvite|[Nn]otify|[Ll]lam[ae]s? a|[Aa]visa a|[Pp]reg[uú]ntale a|[Aa]ppelle[rz]?|[Dd]emande à|[Pp]r[ée]viens|[Cc]ontacte) (?:jamais |toujours |nunca |siempre )?\p{Lu}\p{Ll}+(?![\p{L}\p{N}.(_])/u,
  /\b[Rr]ufe? (?:nie |bitte |immer )?\p{Lu}\p{Ll}+ .*\ban\b/u,
]

const HAN = /\p{Script=Han}/u
/** Chinese does not separate words: a sentence is as long as its characters. */
const CHARACTERS_A_WORD = 2
const countWords = (text: string): number =>
  HAN.test(text) ? text.length / CHARACTERS_A_WORD : text.split(/[\s-]+/).length

type Judged = { readonly type: LearningType; readonly teaches: boolean }

const judgeBy = (rules: Rules, { text, masked }: Sentence): Judged | undefined => {
  const plain = normalise(masked, rules)
  const bare = plain.replace(/[.!…,;:。！；，]+$/, "")
  const found = rules.signals.find(({ pattern }) => pattern.test(bare))
  if (!found || rules.exclusions.some((pattern) => pattern.test(plain))) return undefined
  const words = countWords(text)
  const teaches = words >= MIN_WORDS && words <= MAX_WORDS && contentWords(text).length > 0
  return { type: found.type, teaches }
}

const judge = (sentence: Sentence, findRules: ReturnType<typeof createRuleFinder>): Judged | undefined => {
  if (sentence.text.length > MAX_CHARACTERS) return undefined
  if (ABOUT_PEOPLE.some((pattern) => pattern.test(sentence.text))) return undefined
  for (const rules of findRules(sentence.masked)) {
    const judged = judgeBy(rules, sentence)
    if (judged) return judged
  }
  return undefined
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
  const findRules = createRuleFinder(lines.join("\n"))
  const sentences = splitSentences(lines).slice(0, HAND_TYPED_SENTENCES)
  const judged = sentences.map((sentence) => ({ sentence: sentence.text, ...judge(sentence, findRules) }))
  return {
    learnings: judged.flatMap(({ sentence, type, teaches }) =>
      type !== undefined && teaches === true ? [{ type, sentence }] : [],
    ),
    objects: judged.some(({ type }) => type === "correction"),
  }
}

/** Asks without loading the rest of the feature. */
export const isTeaching = (parts: readonly Part[]): boolean => detect(collectUserText(parts)).learnings.length > 0
