import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import {
  databaseOf,
  embeddedProgram,
  holdEmbedded,
  type LedgerProgram,
  type RunLedger,
  runProgram,
} from "../../support/ledger/ledger-process.ts"
import { findRealProg, registerMissingRealProg } from "../../support/ledger/ledger-real.ts"
import { readTables, type SqlRow } from "../../support/ledger/ledger-rows.ts"
import { NEWEST_OR_ALL } from "../../support/opencode/ends.ts"
import { NEWEST, OLDEST } from "../../support/opencode/opencode-binary.ts"
import { readEverything, tellStory } from "./story.ts"

const DIFFERENTIAL_TIMEOUT_MS = 120_000

const ID = /\b(?:ts|ep|lrn|con|lbl)-[0-9a-f]{6}\b/g
const TIME = /\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z| [+-]\d{4} [^\s"]+|[+-]\d\d:\d\d)?(?: m=[^\s"]+)?/g

/** Names ids by order of appearance and hides times, so that two runs of the same commands can be compared. */
const createNormalizer = (home: string) => {
  const names = new Map<string, string>()
  const nameOf = (id: string): string => {
    const name = names.get(id) ?? `${id.slice(0, id.indexOf("-"))}#${names.size + 1}`
    names.set(id, name)
    return name
  }
  return (text: string): string => text.replaceAll(home, "HOME").replace(ID, nameOf).replace(TIME, "TIME")
}

/** prog's own prose about how to work, and how to go on after init, is not the embedded ledger's. */
const withoutProse = (stdout: string): string =>
  stdout.replace(/^[\s\S]*## Current State\n/, "").replace(/\n\nNext: run 'prog onboard'.*/, "")

/** prog's driver puts the kind of SQLite's refusal before it, and its code behind. */
const withoutKind = (error: string): string =>
  error.replace(/(?:constraint failed|SQL logic error): (.*) \(\d+\)$/, "$1")

/** Runs the story's command lines. @returns their normalised output, and the rows as sorted texts */
const tell = async (program: LedgerProgram) => {
  const home = temporaryFolder()
  const normalize = createNormalizer(home)
  const run = runProgram(program, { home })
  const steps: { line: string; exitCode: number; stdout: string; error: string }[] = []
  const say = async (...args: readonly string[]): Promise<string> => {
    const { exitCode, stdout, stderr } = await run(args)
    const line = normalize(args.join(" "))
    // Usage texts differ between the ledgers, and prog names a constraint for a task that it does not know.
    const error = withoutKind(normalize(stderr.split("\n")[0] ?? "")).replace(UNKNOWN_ITEM, "unknown item")
    steps.push({ line, exitCode, stdout: withoutProse(normalize(stdout)), error })
    return stdout.trim()
  }
  await tellStory([say])
  // No output shows the ids of concepts and labels.
  const rowText = (row: SqlRow): string => normalize(JSON.stringify(row).replace(/"(con|lbl)-[0-9a-f]{6}"/g, '"$1"'))
  const rows = Object.entries(readTables(databaseOf(home)))
  return { steps, tables: rows.map(([name, table]) => [name, table.map(rowText).toSorted()]) }
}

/** By `log`, in the embedded ledger's words and in prog's. */
const UNKNOWN_ITEM = /^Error: (?:item not found: .*|failed to add log: FOREIGN KEY constraint failed)$/

const describeDifferences = (real: LedgerProgram): void => {
  const options = { timeout: DIFFERENTIAL_TIMEOUT_MS }

  test.each(NEWEST_OR_ALL)(
    promised(["ledger.D3", "ledger.D5"], "the same commands give the same output and rows on OpenCode $version"),
    options,
    async (binary) => {
      const [mine, theirs] = [await tell(embeddedProgram(binary)), await tell(real)]
      expect(mine.steps).toStrictEqual(theirs.steps)
      expect(mine.tables).toStrictEqual(theirs.tables)
    },
  )

  describe.each([
    { binary: OLDEST, TZ: "UTC" },
    { binary: NEWEST, TZ: "Asia/Kolkata" },
  ])("with local time in $TZ", options, ({ binary, TZ }) => {
    const embedded = holdEmbedded(binary, { TZ })

    test(promised(["ledger.D3", "ledger.D5"], "in one database, each ledger reads what the other wrote"), async () => {
      const home = temporaryFolder()
      const [mine, theirs] = [embedded(home), runProgram(real, { home, environment: { TZ } })]
      const teller =
        (run: RunLedger) =>
        async (...args: readonly string[]) =>
          (await run(args)).stdout.trim()
      const story = await tellStory([teller(mine), teller(theirs)])
      const ids = [...story.tasks, story.epic, ...story.learnings].join(" ")
      expect(ids).toMatch(/^(ts-\w{6} ){3}ep-\w{6}( lrn-\w{6}){2}$/)
      const answer = async (run: RunLedger, line: readonly string[]) => {
        const { exitCode, stdout, stderr } = await run(line)
        return { line, exitCode, stdout: withoutProse(stdout), error: withoutKind(stderr.split("\n")[0] ?? "") }
      }
      for (const line of readEverything(story))
        expect(await answer(mine, line)).toStrictEqual(await answer(theirs, line))
    })
  })
}

const real = findRealProg()

if (real.kind === "found") describeDifferences(real.program)
else registerMissingRealProg("the differential test of real and embedded ledger", real.reason)
