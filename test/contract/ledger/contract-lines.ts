import { expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { CONTRACT, type OpenLedger } from "./contract-tasks.ts"

/** Texts a shell, a flag parser, SQL, JSON or a terminal might take for something else. */
const TEXTS: readonly string[] = [
  `single ' and double " quotes`,
  "`backticks` $(touch /tmp/x) ${HOME} $HOME",
  "several\nlines\r\n\tand a tab",
  "emoji 🙂 👩‍👩‍👧 and 漢字, ünïcödé, \u2028 and \u00a0",
  "-starts with a dash",
  "--json",
  "--",
  "-",
  "back\\slash \\n and %s %d",
  "'; DROP TABLE items; --",
  "<b>&amp;</b>",
  "",
  "  spaces around  ",
]

export const describeArguments = (open: OpenLedger): void => {
  test(promised(CONTRACT, "a text of any content arrives as it is, in title, description and log"), async () => {
    const ledger = await open()
    for (const text of TEXTS) {
      const id = await ledger.ok("add", "-p", "demo", `--dod=${text}`, "--", text)
      await ledger.ok("desc", id, "--", text)
      await ledger.ok("log", id, "--", text)
      expect(await ledger.json("show", id, "--json")).toMatchObject({
        title: text,
        description: text,
        definition_of_done: text === "" ? null : text,
        logs: [{ message: text }],
      })
    }
  })

  test(promised(CONTRACT, "flags are read in every form, before and after the command and its arguments"), async () => {
    const ledger = await open()
    const forms: readonly (readonly string[])[] = [
      ["-p", "demo", "add", "T", "--priority", "1"],
      ["add", "-pdemo", "T", "--priority=1"],
      ["add", "T", "-p=demo", "--priority", "+1"],
      ["--project=demo", "add", "--priority", "0x1", "T"],
      ["add", "--project", "demo", "--priority=01", "--", "T"],
    ]
    for (const form of forms) {
      const id = await ledger.ok(...form)
      expect(await ledger.json("show", "--json", id)).toMatchObject({ title: "T", project: "demo", priority: 1 })
    }
    const epic = await ledger.ok("add", "-ep", "demo", "E", "-d", "-5", "", "x")
    expect(await ledger.json("show", epic, "--json")).toMatchObject({ type: "epic", description: "-5", title: "E  x" })
    expect(await ledger.ok("list", "--json=false", "--has-blockers=0")).toContain(epic)
    expect(await ledger.ok("--", "list")).toMatch(/^Usage:\s+prog/m)
    expect(await ledger.ok("list", "--", "--json")).toContain(epic)
  })
}

const UNKNOWN = "item not found: ts-000000 (use 'prog list' to see available items)"
const NO_LEARNING = "learning not found: lrn-000000"

/** Lines made of a form and comma-separated texts in place of its question mark, all with the same answer. */
const refusals = (message: string, form: string, texts: string): [string, string][] =>
  texts.split(",").map((text) => [form.replace("?", text), message])

/** Command lines in an empty ledger, and what prog v0.17 says to each. */
const REFUSALS: readonly (readonly [string, string])[] = [
  ...refusals(UNKNOWN, "? ts-000000", "show,start,done,review,open,edit,delete,concepts --related"),
  ...refusals(UNKNOWN, "? ts-000000 x", "cancel,append,desc,label,unlabel,project"),
  ...refusals(UNKNOWN, "edit ts-000000 ? x", "--title,--dod"),
  ["parent ts-000000 ep-000000", "parent not found: ep-000000 (use 'prog list' to see available items)"],
  [
    "blocks ts-000000 ts-000001",
    "one or both items not found: ts-000001, ts-000000 (use 'prog list' to see available items)",
  ],
  ["learn edit lrn-000000 --summary x", NO_LEARNING],
  ...refusals(NO_LEARNING, "? lrn-000000", "learn stale,learn rm,context --id"),
  ...refusals("label not found: x", "labels ? -p demo", "rm x,rename x y"),
  ...refusals("concept not found: x", "concepts x -p demo ? y", "--summary,--rename"),
  ...refusals("project is required (-p)", "?", "add x,labels,learn x -c a,concepts --stats"),
  ["learn x -p demo", "at least one concept is required (-c)"],
  ["learn edit lrn-000000", "--summary or --detail is required"],
  ["context", "project is required (-p) or use --id"],
  ["context -p demo", "specify concepts (-c), query (-q), or use --summary for all"],
  ["concepts", "project is required (-p) or use --related <task-id>"],
  ["list --status nope", "invalid status: nope (valid: open, in_progress, blocked, reviewing, done, canceled)"],
  ["list --type nope", "invalid type: nope (valid: task, epic)"],
  ["frobnicate", 'unknown command "frobnicate" for "prog"'],
]

/** Wrong command lines: each ledger has words of its own for them. */
const WRONG_LINES: readonly string[] = [
  ...["add", "log ts-000000", "start", "start a b", "learn edit", "labels add -p demo", "list --bogus", "list -x"],
  ...["list -p", "list --project", "list --json=maybe", "add x -p demo --priority abc", "log ts-000000 -x"],
  ...["list --=x", "--json list", "list --version"],
]

export const describeRefusals = (open: OpenLedger): void => {
  test(promised(CONTRACT, "every refusal has exit code 1 and prog's own message in its first line"), async () => {
    const ledger = await open()
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
    // prog says only which constraint failed.
    const unknown = [`Error: ${UNKNOWN}`, expect.stringMatching(/^Error: failed to add log: .*FOREIGN KEY constraint/)]
    expect(unknown).toContainEqual(await ledger.fails("log", "ts-000000", "x"))
    expect(await ledger.ok("list")).toBe("No items")
  })
}
