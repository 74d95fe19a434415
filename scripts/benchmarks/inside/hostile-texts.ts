/** Texts that a parser of file references has to get through in a time that grows with their length alone. */
export type HostileText = {
  id: string
  /** For the table, at the length the benchmark asks for. */
  what: string
  /** A text of at least `characters` characters, all of them ASCII. */
  make: (characters: number) => string
}

const repeated = (unit: string) => (characters: number) => unit.repeat(Math.ceil(characters / unit.length))

/** Runs of one backtick, of two, of three …: none of them closes another. */
const growingRuns = (characters: number): string => {
  const runs: string[] = []
  for (let length = 0, run = 1; length < characters; run++) {
    const text = `${"`".repeat(run)} @a `
    runs.push(text)
    length += text.length
  }
  return runs.join("")
}

const sentence = (index: number): string =>
  `See @src/part-${index % 400}/parser.ts:${index}-${index + 10}, (@docs/a.md#L3) and \`@not/this\` of step ${index}.\n`

const prose = (characters: number): string => {
  const sentences: string[] = []
  for (let length = 0, index = 1; length < characters; index++) {
    const text = sentence(index)
    sentences.push(text)
    length += text.length
  }
  return sentences.join("")
}

export const HOSTILE_TEXTS: readonly HostileText[] = [
  { id: "at-signs", what: "1 MB of `@`", make: repeated("@") },
  { id: "quotes", what: '1 MB of `@"`', make: repeated('@"') },
  { id: "open-brackets", what: "1 MB of `@a(`", make: repeated("@a(") },
  {
    id: "closed-brackets",
    what: "1 MB of closing brackets (paths of 4,000)",
    make: repeated(`@a${")".repeat(4_000)} `),
  },
  { id: "addresses", what: "1 MB of e-mail addresses", make: repeated("a@b.example ") },
  { id: "backticks", what: "1 MB of backticks in ever longer runs", make: growingRuns },
  { id: "single-backticks", what: "1 MB of backticks and `@`", make: repeated("`@ ``@ ") },
  { id: "fences", what: "1 MB of code fences", make: repeated("```\n@a\n") },
  { id: "prose", what: "1 MB of prose with references", make: prose },
]
