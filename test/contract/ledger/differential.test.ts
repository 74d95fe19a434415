import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/temporary-folder.ts"
import {
  databaseOf,
  embeddedProgram,
  holdEmbedded,
  type LedgerProgram,
  runProgram,
} from "../../support/ledger/ledger-process.ts"
import { findRealProg, registerMissingRealProg } from "../../support/ledger/ledger-real.ts"
import { readTables } from "../../support/ledger/ledger-rows.ts"
import { createNormalizer, createTranscript, normalizeTables } from "../../support/ledger/ledger-transcript.ts"
import { NEWEST_OR_ALL } from "../../support/opencode/ends.ts"
import { NEWEST, OLDEST } from "../../support/opencode/opencode-binary.ts"
import { readEverything, tellStory } from "./story.ts"

const DIFFERENTIAL_TIMEOUT_MS = 120_000

const tell = async (program: LedgerProgram) => {
  const home = temporaryFolder()
  const withoutIds = createNormalizer()
  const normalize = (text: string): string => withoutIds(text.replaceAll(home, "HOME"))
  const { say, steps } = createTranscript(runProgram(program, { home }), normalize)
  await tellStory([say])
  return { steps, tables: normalizeTables(readTables(databaseOf(home)), normalize) }
}

/** prog's own prose about how to work, and how to go on after init, is not the embedded ledger's. */
const withoutProse = (stdout: string): string =>
  stdout.replace(/^[\s\S]*## Current State\n/, "").replace(/\n\nNext: run 'prog onboard'.*/, "")

const describeDifferences = (real: LedgerProgram): void => {
  const options = { timeout: DIFFERENTIAL_TIMEOUT_MS }

  test.each(NEWEST_OR_ALL)(
    promised(
      ["ledger.D3", "ledger.D5"],
      "the same commands give the same output and the same rows on OpenCode $version",
    ),
    options,
    async (binary) => {
      const [mine, theirs] = [await tell(embeddedProgram(binary)), await tell(real)]
      const comparable = theirs.steps.map((step) => ({ ...step, stdout: withoutProse(step.stdout) }))
      expect(mine.steps.map((step) => ({ ...step, stdout: withoutProse(step.stdout) }))).toStrictEqual(comparable)
      expect(mine.tables).toStrictEqual(theirs.tables)
    },
  )

  describe.each([
    { binary: OLDEST, TZ: "UTC" },
    { binary: NEWEST, TZ: "Asia/Kolkata" },
  ])("with local time in $TZ", ({ binary, TZ }) => {
    const embedded = holdEmbedded(binary, { TZ })

    test(
      promised(["ledger.D3", "ledger.D5"], "in one database, each reads what the other wrote"),
      options,
      async () => {
        const home = temporaryFolder()
        const [mine, theirs] = [embedded(home), runProgram(real, { home, environment: { TZ } })]
        const tellers = [mine, theirs].map((run) => createTranscript(run, (text) => text).say)
        const story = await tellStory(tellers)
        expect([...story.tasks, story.epic, ...story.learnings].join(" ")).toMatch(
          /^(ts-\w{6} ){3}ep-\w{6}( lrn-\w{6}){2}$/,
        )
        for (const line of readEverything(story)) {
          const [here, there] = [await mine(line), await theirs(line)]
          const [said, expected] = [here, there].map(({ exitCode, stdout, stderr }) => ({
            ...{ line, exitCode, stdout: withoutProse(stdout), error: stderr.split("\n")[0] },
          }))
          expect(said).toStrictEqual(expected)
        }
      },
    )
  })
}

const real = findRealProg()

if (real.kind === "found") describeDifferences(real.program)
else registerMissingRealProg("the differential test of real and embedded ledger", real.reason)
