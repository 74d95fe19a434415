import { appendFileSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { beforeEach, describe, expect, test } from "vitest"
import type { Report } from "../../../.opencode/baton/doctor/report.ts"
import { accountSettingsPath } from "../../../.opencode/baton/host/settings.ts"
import { promised } from "../../requirements.ts"
import { createPatient, type Patient } from "../../support/files/doctor-patient.ts"
import { runScript } from "../../support/files/small-checkout.ts"
import { BINDING } from "../../support/task-binding.ts"

let patient: Patient

beforeEach(() => {
  patient = createPatient()
})

type Finding = { id: string; status: "ok" | "warning" | "broken"; message: RegExp }
/** Breaks the patient. @returns the variables for running doctor, if it needs any */
type Act = (() => void) | (() => Record<string, string>)
type Harm = { name: string; act: Act; finding: Finding }

const PLUGIN = ".opencode/plugins/thing.ts"
const MANIFEST = ".opencode/baton/.manifest"

const harms: Harm[] = []
const harm = (name: string, status: Finding["status"], id: string, message: RegExp, act: Act) =>
  harms.push({ name, act, finding: { id, status, message } })
/** Harms for which doctor itself is run, since only the real runtime imports a plugin. */
const importHarms: Harm[] = []
const importHarm = (name: string, message: RegExp, act: Act) =>
  importHarms.push({ name, act, finding: { id: "plugins", status: "broken", message } })

const answering = (answer: string) => () => {
  const path = join(patient.root, "other-opencode")
  writeFileSync(path, `#!/bin/sh\n${answer}\n`, { mode: 0o755 })
  return { BATON_OPENCODE: path }
}
const outside = (path: string, text: string | Buffer) => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}
/** Writes a run-time record, ignored by git as Baton keeps them. */
const record = (path: string, text: string) => {
  patient.write(".opencode/state/.gitignore", "*\n")
  patient.write(`.opencode/state/${path}`, text)
}
/** Names a file in the manifest, with a sum that it has not. */
const list = (path: string) => appendFileSync(join(patient.project, MANIFEST), `1\t1\t${path}\n`)
/** Keeps the user's file at the path, as an installation does. */
const layBeside = (path: string, own: string) => {
  patient.write(`${path}.baton-new`, patient.read(path))
  patient.write(path, own)
  patient.write(MANIFEST, patient.read(MANIFEST).replaceAll(`\t${path}\n`, `\t${path}.baton-new\n`))
}
/** The first 100 bytes of an SQLite file, with the schema version at offset 60. */
const database = (version: number): Buffer => {
  const header = Buffer.alloc(100)
  header.write("SQLite format 3\u0000", "latin1")
  header.writeInt32BE(version, 60)
  return header
}

harm(
  "an OpenCode before 1.2.15",
  "broken",
  "opencode",
  /OpenCode 1\.2\.9 .* older than 1\.2\.15/,
  answering("echo 1.2.9"),
)
harm(
  "an OpenCode 2 before 2.0.15",
  "broken",
  "opencode",
  /OpenCode 2\.0\.1 .* older than 2\.0\.15/,
  answering("echo 2.0.1"),
)
harm("an OpenCode that fails", "broken", "opencode", /exit code 3: no libc/, answering("echo no libc >&2; exit 3"))
harm("a development build", "warning", "opencode", /0\.0\.0-dev/, answering("echo 0.0.0-dev-2026"))
const naming = (name: string, value: string) => () => ({ [name]: value })
harm("a BATON_OPENCODE that is no program", "broken", "opencode", /is '\/absent'/, naming("BATON_OPENCODE", "/absent"))
harm("OPENCODE_PURE", "warning", "environment", /OPENCODE_PURE is set/, naming("OPENCODE_PURE", "1"))

const deleting = (path: string) => () => patient.delete(path)
const writing = (path: string, text: string) => () => patient.write(path, text)
const THING = ".opencode/baton/host/thing.ts"
harm("a bundle's file that is gone", "broken", "files", /missing: \.opencode\/baton\/host\/thing\.ts/, deleting(THING))
harm("a prompt that is gone", "warning", "files", /prompts\/planner\.md/, deleting("prompts/planner.md"))
harm("a newer version beside an own file", "warning", "files", /handoff\.md\.baton-new/, () => {
  patient.write("prompts/handoff.md", "<!-- baton:handoff -->\nmine\n")
  patient.install()
})
harm("a version beside the project's file", "warning", "files", /beside the project's own file: .*handoff/, () =>
  layBeside("prompts/handoff.md", "Dear {{customer}},\n"),
)
const WORKER = ".opencode/prompts/worker.md"
harm("a second prompt that is gone", "warning", "files", /removed: \.opencode\/prompts\/worker\.md/, () => list(WORKER))
harm("an installation that was interrupted", "broken", "files", /interrupted/, () => list("prompts/handoff.md"))
harm("no bundle at all", "broken", "files", /no \.opencode\/baton/, deleting(".opencode"))

/** Installs a plugin that has this text. */
const shipping = (text: string) => {
  patient.ship(PLUGIN, text)
  patient.install()
}
harm("no plugin", "broken", "plugins", /no plugin of Baton/, deleting(PLUGIN))
importHarm("a plugin with two exports", /Extra \(string\).*Thing \(function\).*one function/, () =>
  shipping(`${patient.read(PLUGIN)}\nexport const Extra = "text"\n`),
)
importHarm("a plugin whose file is missing", /thing\.ts does not load: .*host\/thing/, deleting(THING))
importHarm("a plugin that ends the process", /ended early/, () =>
  shipping(`${patient.read(PLUGIN)}\nprocess.exit(0)\n`),
)

const COPY = 'export { Thing } from "../baton/thing.ts"\n'
harm("a copy in the global folder", "warning", "copies", /thing\.ts in .*\.config\/opencode\/plugins/, () =>
  outside(join(patient.home, ".config/opencode/plugins/thing.ts"), COPY),
)
harm("a copy under XDG_CONFIG_HOME", "warning", "copies", /xdg\/opencode\/plugin$/, () => {
  outside(join(patient.root, "xdg/opencode/plugin/thing.ts"), COPY)
  return { XDG_CONFIG_HOME: join(patient.root, "xdg") }
})
harm("a copy in a folder above, in the same repository", "warning", "copies", /second copy/, () => {
  mkdirSync(join(patient.root, ".git"))
  outside(join(patient.root, ".opencode/plugins/thing.ts"), COPY)
})

harm("missing packages", "warning", "dependencies", /zod is missing/, deleting(".opencode/node_modules"))

const empty = writing("prompts/handoff.md", " \n")
harm("an empty handoff prompt", "warning", "prompts", /handoff\.md cannot be used: it is empty/, empty)
const withoutLine = writing("prompts/worker.md", "# Worker\n\n  Task: {{task_id}}\n\n<!-- baton:brief -->\n")
harm("a worker prompt without its Task line", "broken", "prompts", /worker\.md has no line 'Task: /, withoutLine)
harm("a planner prompt with another heading", "broken", "prompts", /planner\.md is read as .* worker/, () =>
  patient.write("prompts/planner.md", patient.read("prompts/planner.md").replace("# Planner", "# Plan")),
)
const withoutProtocol = writing("prompts/worker.md", "# Worker\n\nTask: {{task_id}}\n\n<!-- baton:brief -->\n")
harm("a worker prompt without its protocol", "warning", "prompts", /no protocol section/, withoutProtocol)
const goalless = writing("prompts/handoff-command.md", "<!-- baton:handoff-command -->\nCall handoff_session.\n")
harm("a command without its goal", "warning", "prompts", /handoff-command\.md does not mention \$ARGUMENTS/, goalless)

const invalid = writing(".opencode/baton.json", '{"handoff":{"maxFiles":-1}}\n')
harm("settings that are not valid", "warning", "settings", /baton\.json cannot be used: /, invalid)
harm("a stored handoff that is damaged", "warning", "handoffs", /a stored handoff cannot be read/, () =>
  record("handoffs/handoff-1.json", '{"version":1,'),
)

const live = (name: string, message: RegExp, act: Act) => harm(name, "warning", "live-state", message, act)
const absent = naming("BATON_STATE_WRITER", '["/absent/writer"]')
live("a state writer that is not there", /the writer '\/absent\/writer' is not there/, absent)
const noArray = naming("BATON_STATE_WRITER", "c2c")
live("a variable that names no state writer", /expected a JSON array of program and/, noArray)
const own = writing(".opencode/baton.json", '{"liveState":{"writer":["my-writer"]}}\n')
live("a writer in the project's settings", /the writer \["my-writer"\] of .* is not run/, own)
const writeAccount = (text: string): void => {
  const path = accountSettingsPath({ HOME: patient.home })
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}
live("a writer in the account's settings that is not there", /the writer 'my-writer' is not there/, () =>
  writeAccount('{"liveState":{"writer":["my-writer"]}}\n'),
)
live("a program of onWaiting that is not there", /the program 'my-bell' of onWaiting is not there/, () =>
  writeAccount('{"onWaiting":["my-bell"]}\n'),
)
live("account's settings that are not valid", /baton\.json cannot be used: /, () => writeAccount("{"))
live("a statefile that cannot be read", /no agent is seen in .*one\.json/, () => record("live/one.json/in-the-way", ""))
harm("a session's learning record that is damaged", "warning", "learning", /a session's record cannot be read/, () =>
  record("learning/sessions/ses_1.json", '{"version":1,'),
)
harm("something learned that waits", "warning", "learning", /^1 of them wait/, () => {
  const saying = { key: "k", type: "correction", sentence: "No, use tabs.", messageID: "msg_1", at: "2026-01-01" }
  const sayings = [{ ...saying, state: "waiting", files: [], confirmed: false }]
  const session = { version: 1, sessionID: "ses_1", pid: 1, sayings, given: [] }
  record("learning/sessions/ses_1.json", JSON.stringify(session))
})

harm("another program called prog", "warning", "ledger", /programs\/prog is called prog and is not the ledger/, () =>
  patient.program("prog", "echo I make progress bars\n"),
)
harm("a prog that hangs", "broken", "ledger", /did not answer/, () =>
  patient.program("prog", "# github.com/baiirun/prog\nexec sleep 60\n"),
)
const withoutLedger = deleting(".opencode/baton/ledger/embedded/main.ts")
harm("an embedded ledger that is gone", "broken", "ledger", /embedded ledger is missing/, withoutLedger)

const keeping = (content: string | Buffer) => () => outside(join(patient.home, ".prog/prog.db"), content)
harm("a database that is none", "broken", "database", /not an SQLite database/, keeping("text"))
harm("a database without tables", "warning", "database", /holds no ledger/, keeping(""))
harm("a database that is a folder", "broken", "database", /is not a file/, () => {
  mkdirSync(join(patient.home, ".prog/prog.db"), { recursive: true })
})
harm("a database of a newer prog", "warning", "database", /own\.db has schema version 4/, () => {
  outside(join(patient.home, "own.db"), database(4))
  return { PROG_DB: join(patient.home, "own.db") }
})
const bound = writing(".opencode/state/tasks/ses_1.json", JSON.stringify(BINDING))
harm("a database that is gone under a task", "broken", "database", /is missing: .*task: 1, .*wait: 0/, bound)
harm("an empty database where a record waits", "broken", "database", /is missing: .*task: 0, .*wait: 1/, () => {
  patient.write(".opencode/state/outbox/1767323045000-000000-a.json", WAITING)
  keeping(database(2))()
})

const ENTRY = { kind: "log", taskID: "ts-0a1b2c", message: "Compaction 1" }
const WAITING = JSON.stringify({ version: 1, createdAt: "2026-01-02T03:04:05.000Z", entry: ENTRY })
harm("a record that waits", "warning", "outbox", /^1 record waits/, () =>
  record("outbox/1767323045000-000000-a.json", WAITING),
)
harm("a parked record", "warning", "outbox", /^a log of ts-0a1b2c .* since 2026-01-02.*: item not found/, () => {
  const path = "outbox/parked/1767323045000-000000-a.json"
  record(path, WAITING)
  record(`${path}.reason`, "2026-01-02T03:04:06.000Z\nitem not found\n")
})
harm("a parked record that is none", "warning", "outbox", /^a record could not be delivered/, () =>
  record("outbox/parked/1.json", "text"),
)

harm("a run-time folder that is a file", "broken", "state", /state is not a folder/, writing(".opencode/state", ""))
harm("records that git would commit", "warning", "state", /could be committed/, () => {
  runScript(["git", "-C", patient.project, "init", "-q"])
  patient.write(".opencode/state/outbox/1.json", "{}")
})

/** States that are told, and are no fault. */
const fine: Harm[] = []
const noFault = (name: string, id: string, message: RegExp, act: Act) =>
  fine.push({ name, act, finding: { id, status: "ok", message } })

const ownHandoff = writing("prompts/handoff.md", "My own handoff.\n")
noFault("a file the user changed", "files", /installation: prompts\/handoff\.md/, ownHandoff)
noFault("c2c's own plugin", "live-state", /c2c is left to its own plugin, .*plugins\/c2c\.ts/, () => {
  patient.write(".opencode/plugins/c2c.ts", "export const C2C = async () => ({})\n")
  return { C2C_CLI_COMMAND: "/bin/true" }
})
noFault("a record of the last minute", "outbox", /^1 record /, () =>
  patient.write(`.opencode/state/outbox/${Date.now()}-000000-a.json`, WAITING),
)
noFault("a ledger of the known schema, by a link", "database", /home\/\.prog\/prog\.db, schema version 3$/, () => {
  outside(join(patient.root, "ledger.db"), database(3))
  mkdirSync(join(patient.home, ".prog"))
  symlinkSync(join(patient.root, "ledger.db"), join(patient.home, ".prog/prog.db"))
})

const judge = (report: Report, { id, status, message }: Finding): void => {
  const found = report.findings.filter((one) => one.id === id && one.status === status)
  expect(found.map((one) => one.message)).toContainEqual(expect.stringMatching(message))
  for (const one of report.findings) expect(one.fix === undefined, one.message).toBe(one.status === "ok")
  expect(report.summary[status]).toBeGreaterThan(0)
}

test.each(harms)(promised("install.E2", "$name is found, with how to mend it"), async ({ act, finding }) => {
  const environment = act() ?? {}
  judge(await patient.look(finding.id, environment), finding)
})

test.each(importHarms)(promised("install.E2", "$name is found, and the exit code says so"), ({ act, finding }) => {
  const { exitCode, report } = patient.examine(act() ?? {})
  judge(report, finding)
  expect(exitCode).toBe(1)
})

test.each(fine)(promised("install.E2", "$name is told and is no fault"), async ({ act, finding }) => {
  const environment = act() ?? {}
  const report = await patient.look(finding.id, environment)
  judge(report, finding)
  expect(report.summary).toMatchObject({ broken: 0, warning: 0 })
})

test(promised("outbox.A1", "waiting and parked records are found with the commands that deliver them"), async () => {
  patient.write(".opencode/state/outbox/1767323045000-000001-b.json", WAITING)
  patient.write(".opencode/state/outbox/parked/1767323045000-000000-a.json", WAITING)
  patient.write(".opencode/state/outbox/parked/none.json", "text")
  const { findings } = await patient.look("outbox")
  expect(findings.map(({ fix }) => fix)).toEqual([
    expect.stringMatching(/^Run \.opencode\/baton\/bin\/baton outbox retry,/),
    expect.stringMatching(/baton outbox retry 176\d+-000000-a;/),
    expect.stringMatching(/baton outbox retry none; or delete .*none\.json/),
  ])
})

describe("settings that cannot be used", () => {
  const [LIVE, LEARNING] = ["live-state", "learning"]
  const KEYS = "handoff, autoHandoff, liveState, learning, compaction, autoTask, notices, claims"
  const OFF = "off while .opencode/baton.json cannot be used in full"
  const messageOf = async (id: string) => (await patient.look(id)).findings[0]?.message

  test.each<[string, string, string[], string?]>([
    ["a file that is no JSON", '{"notices": ', [LIVE, LEARNING]],
    ["an error in learning", '{"learning": {"enabled": 1}}', [LEARNING]],
    ["an error in live state", '{"liveState": {"strict": 1}}', [LIVE]],
    ["an unknown key of live state", '{"liveState": {"on": 1}}', [LIVE], " It may hold enabled, strict, writer."],
    ["an unknown key", '{"notes": "all"}', [], ` It may hold $schema, ${KEYS}.`],
  ])(promised("install.E2", "doctor says what %s switches off"), async (_, text, off, known = "") => {
    patient.write(".opencode/baton.json", text)
    const told = await Promise.all([LIVE, LEARNING].map(async (id) => [id, await messageOf(id)] as const))
    expect(told.filter(([, message]) => message === OFF).map(([id]) => id)).toEqual(off)
    const [found] = (await patient.look("settings")).findings
    const until = "Until then what can be off is off, other invalid settings have their defaults, and the rest counts."
    expect(found).toMatchObject({ status: "warning", fix: `Mend .opencode/baton.json.${known} ${until}` })
  })
})

describe("a project's own file with the name of a prompt", () => {
  const OWN = "# Worker\n\nOur crew at {{site}}.\n"
  const NAMES = ["handoff", "handoff-command", "worker", "planner"]
  const aboutPrompts = () => {
    const { exitCode, report } = patient.examine()
    expect(exitCode).toBe(0)
    expect(JSON.stringify(report)).not.toMatch(/rename it over|Put the line back|does not mention/)
    return report.findings.filter(({ id }) => id === "prompts")
  }

  test.each(NAMES)(promised("start.A4", "a project's own prompts/%s.md is left alone in one plain line"), (name) => {
    patient.write(`prompts/${name}.md`, OWN)
    const told = aboutPrompts().filter(({ message }) => message.includes(`prompts/${name}.md`))
    expect(told).toMatchObject([{ status: "ok" }])
    expect(told[0]?.message).toContain("is the project's own file and is left alone")
    expect(told[0]?.message).toMatch(/Baton uses its built-in (prompt|protocol)\. /)
    expect(told[0]?.message).toContain(`add the line <!-- baton:${name} -->`)
    layBeside(`prompts/${name}.md`, OWN)
    aboutPrompts()
    patient.write(`prompts/${name}.md`, `<!-- baton:${name} -->\n${OWN}`)
    const { report } = patient.examine()
    expect(JSON.stringify(report)).not.toContain("the project's own file")
  })

  test(promised("start.A4", "beside a project's own file the prompt of .opencode/prompts is judged"), () => {
    for (const name of NAMES) {
      patient.write(`.opencode/prompts/${name}.md`, patient.read(`prompts/${name}.md`))
      patient.write(`prompts/${name}.md`, OWN)
    }
    const found = aboutPrompts()
    expect(found.filter(({ status }) => status !== "ok")).toEqual([])
    const messages = found.map(({ message }) => message)
    for (const name of NAMES) {
      expect(messages).toContainEqual(expect.stringContaining(`prompts/${name}.md is the project's own file`))
      expect(messages).toContainEqual(expect.stringContaining(`Baton uses .opencode/prompts/${name}.md`))
    }
    expect(messages).toContain(".opencode/prompts/worker.md states task, role and protocol")
    patient.write(".opencode/prompts/worker.md", "# Worker\n<!-- baton:brief -->\n")
    const [broken] = patient.examine().report.findings.filter(({ status }) => status === "broken")
    expect(broken?.message).toContain(".opencode/prompts/worker.md has no line 'Task: ")
  })
})
