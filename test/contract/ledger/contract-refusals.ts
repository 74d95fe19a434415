import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import type { OpenLedger } from "./contract.ts"

const CONTRACT = ["ledger.D3", "ledger.D5"] as const

const UNKNOWN = "item not found: ts-000000 (use 'prog list' to see available items)"
const NO_LEARNING = "learning not found: lrn-000000"

/** Command lines in an empty ledger, and what prog v0.17 says to each. */
const REFUSALS: readonly (readonly [string, string])[] = [
  ["show ts-000000", UNKNOWN],
  ["start ts-000000", UNKNOWN],
  ["done ts-000000", UNKNOWN],
  ["review ts-000000", UNKNOWN],
  ["cancel ts-000000 why", UNKNOWN],
  ["open ts-000000", UNKNOWN],
  ["append ts-000000 x", UNKNOWN],
  ["desc ts-000000 x", UNKNOWN],
  ["edit ts-000000 --title x", UNKNOWN],
  ["edit ts-000000 --dod x", UNKNOWN],
  ["edit ts-000000", UNKNOWN],
  ["delete ts-000000", UNKNOWN],
  ["label ts-000000 x", UNKNOWN],
  ["unlabel ts-000000 x", UNKNOWN],
  ["project ts-000000 x", UNKNOWN],
  ["concepts --related ts-000000", UNKNOWN],
  ["log ts-000000 x", "failed to add log: constraint failed: FOREIGN KEY constraint failed (787)"],
  ["parent ts-000000 ep-000000", "parent not found: ep-000000 (use 'prog list' to see available items)"],
  [
    "blocks ts-000000 ts-000001",
    "one or both items not found: ts-000001, ts-000000 (use 'prog list' to see available items)",
  ],
  ["learn edit lrn-000000 --summary x", NO_LEARNING],
  ["learn stale lrn-000000", NO_LEARNING],
  ["learn rm lrn-000000", NO_LEARNING],
  ["context --id lrn-000000", NO_LEARNING],
  ["labels rm x -p demo", "label not found: x"],
  ["labels rename x y -p demo", "label not found: x"],
  ["concepts x -p demo --summary y", "concept not found: x"],
  ["concepts x -p demo --rename y", "concept not found: x"],
  ["add x", "project is required (-p)"],
  ["labels", "project is required (-p)"],
  ["learn x -c a", "project is required (-p)"],
  ["learn x -p demo", "at least one concept is required (-c)"],
  ["learn edit lrn-000000", "--summary or --detail is required"],
  ["context", "project is required (-p) or use --id"],
  ["context -p demo", "specify concepts (-c), query (-q), or use --summary for all"],
  ["concepts", "project is required (-p) or use --related <task-id>"],
  ["concepts --stats", "project is required (-p)"],
  ["list --status nope", "invalid status: nope (valid: open, in_progress, blocked, reviewing, done, canceled)"],
  ["list --type nope", "invalid type: nope (valid: task, epic)"],
  ["add", "requires at least 1 arg(s), only received 0"],
  ["log ts-000000", "requires at least 2 arg(s), only received 1"],
  ["start", "accepts 1 arg(s), received 0"],
  ["start a b", "accepts 1 arg(s), received 2"],
  ["learn edit", "accepts 1 arg(s), received 0"],
  ["labels add -p demo", "accepts 1 arg(s), received 0"],
  ["list --bogus", "unknown flag: --bogus"],
  ["list -x", "unknown shorthand flag: 'x' in -x"],
  ["list -p", "flag needs an argument: 'p' in -p"],
  ["list --project", "flag needs an argument: --project"],
  [
    "list --json=maybe",
    `invalid argument "maybe" for "--json" flag: strconv.ParseBool: parsing "maybe": invalid syntax`,
  ],
  [
    "add x -p demo --priority abc",
    `invalid argument "abc" for "--priority" flag: strconv.ParseInt: parsing "abc": invalid syntax`,
  ],
  ["log ts-000000 -x", "unknown shorthand flag: 'x' in -x"],
  ["list --=x", "bad flag syntax: --=x"],
  ["--json list", "unknown flag: --json"],
  ["list --version", "unknown flag: --version"],
  ["frobnicate", 'unknown command "frobnicate" for "prog"'],
]

export const describeRefusals = (open: OpenLedger): void => {
  describe("refusals", () => {
    test(promised(CONTRACT, "every refusal has exit code 1 and prog's own words, first and last"), async () => {
      const ledger = open()
      await ledger.ok("init")
      for (const [line, message] of REFUSALS) {
        const { exitCode, stdout, stderr } = await ledger.run(line.split(" "))
        const said = stderr.trimEnd().split("\n")
        expect({ line, exitCode, stdout, first: said[0], last: said.at(-1) }).toStrictEqual({
          ...{ line, exitCode: 1, stdout: "", first: `Error: ${message}`, last: message },
        })
      }
      expect(await ledger.ok("list")).toBe("No items")
    })

    test(promised(CONTRACT, "a command near the one that was typed is suggested"), async () => {
      const ledger = open()
      const { stderr } = await ledger.run(["shwo"])
      expect(stderr).toContain(`Error: unknown command "shwo" for "prog"\n\nDid you mean this?\n\tshow\n`)
      expect(stderr).toContain("Run 'prog --help' for usage.\n")
    })

    test(promised(CONTRACT, "help goes to standard output with exit code 0, and so does the version"), async () => {
      const ledger = open()
      for (const line of [[], ["--help"], ["help"], ["-h"]])
        expect(await ledger.ok(...line)).toContain("Usage:\n  prog")
      for (const line of [
        ["show", "--help"],
        ["help", "show"],
        ["show", "-h"],
        ["show", "a", "b", "-h"],
      ]) {
        expect(await ledger.ok(...line)).toContain("Usage:\n  prog show <id> [flags]")
      }
      expect(await ledger.ok("learn", "edit", "--help")).toContain("Usage:\n  prog learn edit <learning-id> [flags]")
      expect(await ledger.ok("--version")).toMatch(/^prog version \S+/)
    })
  })
}
