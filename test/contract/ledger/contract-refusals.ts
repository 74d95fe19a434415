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
  ["frobnicate", 'unknown command "frobnicate" for "prog"'],
]

/** Wrong command lines: each ledger has words of its own for them. */
const WRONG_LINES: readonly string[] = [
  "add",
  "log ts-000000",
  "start",
  "start a b",
  "learn edit",
  "labels add -p demo",
  "list --bogus",
  "list -x",
  "list -p",
  "list --project",
  "list --json=maybe",
  "add x -p demo --priority abc",
  "log ts-000000 -x",
  "list --=x",
  "--json list",
  "list --version",
]

export const describeRefusals = (open: OpenLedger): void => {
  describe("refusals", () => {
    test(promised(CONTRACT, "every refusal has exit code 1 and prog's own message in its first line"), async () => {
      const ledger = open()
      await ledger.ok("init")
      for (const [line, message] of REFUSALS) {
        const { exitCode, stdout, stderr } = await ledger.run(line.split(" "))
        const [first] = stderr.split("\n")
        expect({ line, exitCode, stdout, first }).toEqual({ line, exitCode: 1, stdout: "", first: `Error: ${message}` })
      }
      for (const line of WRONG_LINES) {
        const { exitCode, stdout, stderr } = await ledger.run(line.split(" "))
        expect({ line, exitCode, stdout }).toEqual({ line, exitCode: 1, stdout: "" })
        expect(stderr).toMatch(/^Error: ./)
      }
      expect(await ledger.ok("list")).toBe("No items")
    })

    test(promised(CONTRACT, "help goes to standard output with exit code 0, and so does the version"), async () => {
      const ledger = open()
      for (const line of [[], ["--help"], ["help"], ["-h"]]) expect(await ledger.ok(...line)).toMatch(/^Usage:\s+prog/m)
      for (const line of [
        ["show", "--help"],
        ["help", "show"],
        ["show", "-h"],
        ["show", "a", "b", "-h"],
      ]) {
        expect(await ledger.ok(...line)).toMatch(/^Usage:\s+prog show <id> \[flags\]/m)
      }
      expect(await ledger.ok("learn", "edit", "--help")).toMatch(/^Usage:\s+prog learn edit <learning-id> \[flags\]/m)
      expect(await ledger.ok("--version")).toMatch(/^prog version \S+/)
    })
  })
}
