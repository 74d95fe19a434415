/**
 * Texts that a parser of file references must parse in time linear in their length. As a program, `hostile-texts.ts ID
 * CHARACTERS` prints the time to parse one of them in this fresh process, in ms.
 */
import { parseReferences } from "../../../.opencode/baton/handoff/references.ts"

/** Makes an ASCII text of at least this length. */
type Make = (characters: number) => string

const repeated =
  (unit: string): Make =>
  (characters) =>
    unit.repeat(Math.ceil(characters / unit.length))

const joined =
  (part: (index: number) => string): Make =>
  (characters) => {
    const parts: string[] = []
    for (let length = 0, index = 1; length < characters; index++) {
      parts.push(part(index))
      length += part(index).length
    }
    return parts.join("")
  }

/** Runs of one backtick, of two, of three …: no run closes another. */
const growingRun = (length: number): string => `${"`".repeat(length)} @a `

const sentence = (index: number): string =>
  `See @src/part-${index % 400}/parser.ts:${index}-${index + 10}, (@docs/a.md#L3) and \`@not/this\` of step ${index}.\n`

export const HOSTILE_TEXTS: readonly (readonly [id: string, of: string, make: Make])[] = [
  ["at-signs", "`@`", repeated("@")],
  ["quotes", '`@"`', repeated('@"')],
  ["open-brackets", "`@a(`", repeated("@a(")],
  ["closed-brackets", "closing brackets (paths of 4,000)", repeated(`@a${")".repeat(4_000)} `)],
  ["addresses", "e-mail addresses", repeated("a@b.example ")],
  ["backticks", "backticks in ever longer runs", joined(growingRun)],
  ["single-backticks", "backticks and `@`", repeated("`@ ``@ ")],
  ["fences", "code fences", repeated("```\n@a\n")],
  ["prose", "prose with references", joined(sentence)],
]

if (import.meta.main) {
  const [wanted = "", characters = ""] = process.argv.slice(2)
  const [, , make] = HOSTILE_TEXTS.find(([id]) => id === wanted) ?? []
  const text = make?.(Number(characters)) ?? ""
  const started = performance.now()
  parseReferences(text)
  console.log(JSON.stringify({ ms: text ? [performance.now() - started] : [] }))
  process.exit(0)
}
