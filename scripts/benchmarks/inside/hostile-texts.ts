/**
 * Texts that a parser of file references must parse in time linear in their length. As a program, `hostile-texts.ts ID
 * CHARACTERS` prints the time to parse one of them in this fresh process, in ms.
 */
import { parseReferences } from "../../../.opencode/baton/handoff/references.ts"

const sentence = (index: number): string =>
  `See @src/part-${index % 400}/parser.ts:${index}-${index + 10}, (@docs/a.md#L3) and \`@not/this\` of step ${index}.\n`

/** Each is made of its parts 1, 2, 3 …, in ASCII. */
export const HOSTILE_TEXTS: readonly (readonly [id: string, of: string, part: (index: number) => string])[] = [
  ["at-signs", "`@`", () => "@"],
  ["quotes", '`@"`', () => '@"'],
  ["open-brackets", "`@a(`", () => "@a("],
  ["closed-brackets", "closing brackets (paths of 4,000)", () => `@a${")".repeat(4_000)} `],
  ["addresses", "e-mail addresses", () => "a@b.example "],
  // No run closes another.
  ["backticks", "backticks in ever longer runs", (length) => `${"`".repeat(length)} @a `],
  ["single-backticks", "backticks and `@`", () => "`@ ``@ "],
  ["fences", "code fences", () => "```\n@a\n"],
  ["prose", "prose with references", sentence],
]

if (import.meta.main) {
  const [wanted, characters] = process.argv.slice(2)
  const [, , partOf] = HOSTILE_TEXTS.find(([id]) => id === wanted) ?? []
  if (!partOf) throw new Error(`expected the id of a text, received ${wanted}`)
  const parts: string[] = []
  for (let length = 0; length < Number(characters); length += parts.at(-1)?.length ?? 0)
    parts.push(partOf(parts.length + 1))
  const text = parts.join("")
  const started = performance.now()
  parseReferences(text)
  console.log(JSON.stringify({ ms: [performance.now() - started] }))
  process.exit(0)
}
