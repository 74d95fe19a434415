/** More characters than people paste into a message. */
const LARGEST = 80_000
/**
 * A tenth and the whole of the largest text, and the limit of its time by that of a hundredth: far below the 10,000 of a time that grows
 * with the square, far above the 100 of one that does not.
 */
const STEPS = [
  { part: 0.1, limit: 300 },
  { part: 1, limit: 1_000 },
] as const
/** Less cannot be told from the clock's own steps. */
const LEAST_MS = 0.05
const MOST_RUNS = 4

/** Texts that make a pattern start again and again, or leave something open; each is repeated up to a size. */
const UNITS: readonly string[] = [
  ..."a A 0 - _ . ! ? : ; , / \\ \" ' ` * # > < ( [ { | = ~ @ & % $ + ^ é 你 🚀 \u0001 \u2028 \u0301".split(" "),
  ...[
    " ",
    "\t",
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    " \n",
    "\n ",
    "a ",
    "a-",
    "a.",
    "a/",
    "a_",
    "a@",
    "a:",
    "@a",
    "@a:1-",
    "./",
    "../",
  ],
  ...[
    "```\n",
    "\n```",
    "~~~\n",
    '@"',
    "@a;",
    "](",
    "<a ",
    "<a>",
    "</a>",
    "<!--",
    "-->",
    "{{",
    "\\x4",
    '{"a":',
    "[1,",
    "x\n",
  ],
  ...[
    "Task: ",
    "\nTask: ts-",
    "ts-abcdef ",
    "# ",
    "\n# Worker\n",
    "\n## Handoff ",
    "- ",
    "1. ",
    "> ",
    "- [ ] ",
    "\n---\n",
  ],
  ...[
    "Continuing work from session ses_a",
    "work on ts-abcdef, ",
    "hand it over ",
    "please start ",
    "{{task_id}}",
    "check: ",
  ],
  ...[
    "No, ",
    "always use a ",
    "use a not b. ",
    "don't ",
    "I prefer ",
    "remember that ",
    "e.g. ",
    "Hi, ",
    "thanks, ",
    "nein, ",
  ],
  ...[
    "password",
    "password: ",
    'token = "',
    "--token ",
    "curl -u a:",
    "mysql -p",
    "a-a-a-",
    "eyJ",
    "eyJa.eyJ",
    "sk-",
    "-----BEGIN ",
  ],
  ...[
    "-----BEGIN A PRIVATE KEY-----",
    "Bearer ",
    "https://",
    "a://b:",
    "cookie: a=b; ",
    "&sig=",
    "AKIA",
    "aB3",
    "~/",
    "/tmp/a ",
    "$HOME/",
  ],
  ...[
    "Next: ",
    "Key: a\n",
    "2026-01-01T",
    "Git: branch ",
    "On a wrote:",
    "I'm sorry, ",
    " M a\0",
    "a\tb|",
    "[2026-01-01 00:00] ",
  ],
]

const HEAD = 'Task: ts-abcdef\nContinuing work from session ses_a.\n@"No, always use '

const WRAPPERS: readonly ((text: string) => string)[] = [
  (text) => text,
  // The last sign is the one that makes a match fail.
  (text) => `${HEAD}${text}\u0001x`,
]

/** Texts of one kind, by their size in characters. */
export type Growing = { readonly name: string; readonly at: (size: number) => string }

export const HOSTILE: readonly Growing[] = UNITS.flatMap((unit) =>
  WRAPPERS.map((wrap, at) => ({
    name: `${JSON.stringify(unit)}${at === 0 ? "" : ", begun and ended"}`,
    at: (size: number) => wrap(unit.repeat(Math.ceil(size / unit.length))),
  })),
)

/**
 * Time of this process on a processor: that of others does not count. Linux measures the sum, and estimates by its ticks how much of it
 * was the program's own.
 */
const timeOf = (run: () => unknown): number => {
  const start = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1_000
}

/** Far beyond a limit in two runs: neither garbage, which may be collected in any one, nor cold code is the reason. */
const CERTAINLY = 4

const best = (run: () => unknown, limit: number): number => {
  let least = Number.POSITIVE_INFINITY
  for (let tries = 0; tries < MOST_RUNS && least > limit; tries++) {
    least = Math.min(least, timeOf(run))
    if (limit > 0 && tries > 0 && least > CERTAINLY * limit) break
  }
  return least
}

/**
 * Compares the time for a small text with that for one a hundred times as long; a tenth of that comes first, so that what grows with the
 * cube ends, too. The best of several runs counts: garbage and other work only add.
 *
 * @param largest number of characters
 * @returns how much longer it took; undefined for a function that is linear, or cuts its text
 */
export const growthBeyondText = (
  run: (text: string) => unknown,
  { at }: Growing,
  largest = LARGEST,
): string | undefined => {
  const small = at(largest / 100)
  const first = Math.max(
    best(() => run(small), 0),
    LEAST_MS,
  )
  for (const { part, limit } of STEPS) {
    const text = at(largest * part)
    const time = best(() => run(text), first * limit)
    if (time > first * limit)
      return `${largest * part} characters: ${(time / first).toFixed(0)} times as long as ${largest / 100}`
  }
  return undefined
}
