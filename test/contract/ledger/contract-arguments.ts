import { expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import type { OpenLedger } from "./contract.ts"

const CONTRACT = ["ledger.D3", "ledger.D5"] as const

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
    const ledger = open()
    await ledger.ok("init")
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
    const ledger = open()
    await ledger.ok("init")
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

  test(promised(CONTRACT, "a text of 100,000 bytes is kept whole"), async () => {
    const ledger = open()
    await ledger.ok("init")
    const text = "Zeile ünd 🙂 ".repeat(6000).slice(0, 80_000)
    const id = await ledger.task("long")
    await ledger.ok("desc", id, text)
    const { description } = await ledger.json<{ description: string }>("show", id, "--json")
    expect(description === text).toBe(true)
  })
}
