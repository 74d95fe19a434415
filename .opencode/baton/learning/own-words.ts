import { extractBrief, fenceAfter, splitLines } from "../task/parse.ts"

/** What a person types by hand is shorter; the rest of a longer message is a paste that no rule below recognised. */
const HAND_TYPED_CHARACTERS = 6_000

/** A paragraph typed by hand is shorter; it also bounds what the patterns below have to look at. */
const LINE_CHARACTERS = 2_000

/** A program, a diff, a shell or a chat log wrote the line. */
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
/** What people write before a colon, against the chat log's `Tom: …` above. */
const OWN_LABELS =
  /^\s*(?:Decision|Note|Important|Remember|Thanks|Ok|Okay|Also|One thing|Two things|PS|FYI|Please|Heads up|Reminder|Correction|Rule)\b/i

/** Everything from here on is somebody else's. */
const FORWARDED =
  /^\s*(?:-{3,} ?(?:original|forwarded)|on .{5,80} wrote:|from: \S+@|continuing work from session ses_)|\b(?:e-?mail|ticket|prompt|transcript|conversation|article|issue|spec|readme|\S+\.md)\b[^.!?]{0,60}:\s*$/i
/** The block that follows is mostly somebody else's, unless the line announces a list of one's own. */
const QUOTING = /:\s*$/
const OWN_LISTS = /\b(?:things?|points?|changes|requests?|wishes|rules?|notes?|please|also|reminders?)\s*:\s*$/i
const OPENING_TAG = /^\s*<([a-z][\w-]*)(?:\s[^>]*)?>/i

const closingTag = (line: string): string | undefined => {
  const name = OPENING_TAG.exec(line)?.[1]
  return name === undefined ? undefined : `</${name}`
}

/** What is skipped: the next block of lines, or all up to a closing tag. */
type Skipping = { readonly kind: "block"; readonly begun: boolean } | { readonly kind: "tag"; readonly closing: string }

/** @returns what is skipped after a line that is itself skipped */
const skipLine = (line: string, skipping: Skipping): Skipping | undefined => {
  if (skipping.kind === "tag") return line.includes(skipping.closing) ? undefined : skipping
  if (line.trim() !== "") return { kind: "block", begun: true }
  return skipping.begun ? undefined : skipping
}

/** @returns what is skipped behind a line that is looked at */
const introducedBy = (line: string): Skipping | undefined => {
  const closing = closingTag(line)
  if (closing !== undefined && !line.includes(closing)) return { kind: "tag", closing }
  return QUOTING.test(line) && !OWN_LISTS.test(line) ? { kind: "block", begun: false } : undefined
}

const isShort = (line: string): boolean => line.length <= LINE_CHARACTERS

const isMachineLine = (line: string): boolean =>
  !isShort(line) || (MACHINE_LINES.some((pattern) => pattern.test(line)) && !OWN_LABELS.test(line))

/** Mostly signs: code, a table, a hash, base64. */
const isProse = (line: string): boolean => {
  const bare = line.replace(/`[^`]*`/g, "")
  const letters = bare.match(/[\p{L}\s,.'’!?-]/gu)?.length ?? 0
  return letters >= bare.length * 0.75 && !/\S{80}/.test(bare)
}

/**
 * The lines of a message that its user wrote by hand, blank lines kept as they part paragraphs: without role prompts, code
 * fences, quotations, pasted logs, diffs, e-mails, chats and tagged blocks. Linear in the length of the text.
 *
 * What is left out by mistake is a learning less; what is kept by mistake is somebody else's rule. So it errs on the first.
 *
 * @param text user-authored text, as `collectUserText` gives it
 */
export const ownWords = (text: string): string[] => {
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
