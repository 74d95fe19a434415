import { execFileSync, spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { noteProject } from "../../../.opencode/baton/live-state/projects.ts"
import { auditEntry } from "../../../.opencode/baton/pass-over/audit/log.ts"
import { promised } from "../../requirements.ts"
import { shareBundle } from "../../support/files/bundle-project.ts"
import { handoffRecord } from "../../support/handoff-record.ts"
import { NEWEST } from "../../support/opencode/opencode-binary.ts"
import { passRecord } from "../../support/opencode/pass-over-values.ts"

/** Clipboard, link, cursor, a C1 character, a text that runs backwards, and a bell. */
const EVIL = "\u001b]52;c;ZXZpbA==\u0007ab\u001b]8;;http://evil.example\u0007c\u001b[2Jd\u009b1Ae\u202ef\r\u0008g"
const ACTED_ON = /(?!\n)[\p{Cc}\p{Bidi_Control}]/u
const AT = "2026-01-01T10:20:30.000Z"

const createProject = shareBundle()

const setUp = async () => {
  const { project, baton, prog, options, write: writeIn } = createProject(NEWEST)
  const write = (path: string, value: unknown) => writeIn(`.opencode/${path}`, value)
  write("state/handoffs/handoff-1.json", handoffRecord("ses_A", ["ses_B"], { id: "1", goal: EVIL, draft: EVIL }))
  write("state/handoffs/handoff-2.json", EVIL)
  const agent = { c2c_session_id: EVIL, opencode_pid: process.pid, agent: { turn_count: 0 } }
  const focus = { ty: "permission", details: { title: EVIL } }
  write("state/live/a.json", { event: "state.snapshot", ts: AT, state: { ...agent, tui_focus: focus } })
  const log = { kind: "log", taskID: "ts-b54507", message: EVIL }
  write("state/outbox/1767323045000-000000-a.json", { version: 1, createdAt: AT, entry: log })
  const entry = { ...auditEntry(passRecord(), { at: AT, event: "sent" }), reason: EVIL, originating_agent: EVIL }
  write(`pass-over-logs/2026-01/session-${entry.root_session_id}-passes.jsonl`, entry)
  write("baton.json", { [EVIL]: 1, liveState: { writer: [EVIL] } })
  noteProject(project, options.env)
  prog("init")
  const id = prog("add", EVIL, "-p", "x", "-d", EVIL).stdout.trim()
  prog("log", id, EVIL)
  prog("claim", "--next", "-p", "x")
  prog("run-end", JSON.stringify([{ task: id, n: 1, kind: "question", detail: EVIL }]))
  return { project, baton, options, id }
}

const LISTS = ["handoffs", "observe", "outbox", "passes", "state", "waiting", "doctor"]
const TEXTS = [
  ...LISTS,
  "learned list",
  "trust state",
  "report -p x",
  "work status -p x",
  "work branches",
  "handoffs --draft 1",
  `handoffs ${EVIL} --nonsense`,
]

describe("no command prints what a terminal would act on", () => {
  test.each(TEXTS)(promised("trust.B1", "baton %j prints nothing that a terminal acts on"), async (line) => {
    const { stdout, stderr } = (await setUp()).baton(...line.split(" "))
    expect(stdout + stderr).not.toMatch(ACTED_ON)
    expect((stdout + stderr).length).toBeGreaterThan(0)
  })

  test.each([...LISTS, "learned", "report"])(
    promised(
      ["trust.B1", "cli.A3"],
      "baton %s --json prints nothing that a terminal acts on, and names its fields as the others do",
    ),
    async (name) => {
      const { stdout, stderr } = (await setUp()).baton(name, "--json", ...(name === "report" ? ["-p", "x"] : []))
      expect(stdout + stderr).not.toMatch(ACTED_ON)
      const text = JSON.stringify(JSON.parse(stdout))
      if (!["doctor", "learned"].includes(name)) expect(text).toContain("evil.example")
      const keys = [...stdout.matchAll(/^ *"([^"]+)": /gm)].map(([, key]) => key)
      expect(keys.filter((key) => !/^[a-z]+(?:[A-Z]+[a-z]*)*$/.test(key ?? ""))).toEqual([])
    },
  )

  test(promised("trust.B1", "baton names a file that git tracks in the state"), async () => {
    const { project, baton } = await setUp()
    writeFileSync(join(project, ".opencode/state", `${EVIL.replaceAll("/", "")}.json`), "{}")
    const git = (...args: string[]) => execFileSync("git", ["-C", project, ...args])
    git("init", "-q")
    git("add", "-f", ".opencode/state")
    const { status, stderr } = baton("handoffs")
    expect(status).toBe(1)
    expect(stderr).toContain("git tracks .opencode/state/")
    expect(stderr).not.toMatch(ACTED_ON)
  })

  test(
    promised("trust.B1", "the embedded prog prints texts as they are to a program, and not to a terminal"),
    async () => {
      const { project, options, id } = await setUp()
      const launcher = join(project, ".opencode/baton/bin/prog")
      const shown = spawnSync(launcher, ["show", id], options).stdout
      expect(shown).toContain(EVIL)
      for (const args of ["list --all", `show ${id}`]) {
        const { stdout } = spawnSync("script", ["-qec", `'${launcher}' ${args}`, "/dev/null"], options)
        expect(stdout).toContain(id)
        expect(stdout.replaceAll("\r\n", "\n")).not.toMatch(ACTED_ON)
      }
    },
  )
})
