import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { beforeEach, describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { createPatient, type Patient } from "../../support/files/doctor-patient.ts"
import { runScript } from "../../support/files/small-checkout.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"

const ENTRY = "baton-opencode@0.1.0"

let patient: Patient

/** A project without a copy of its own. */
beforeEach(() => {
  patient = createPatient()
  patient.install("--uninstall")
  patient.delete(".opencode")
})

const put = (path: string, text = "{}\n"): void => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

const inGlobal = (path: string): string => join(patient.home, ".config/opencode", path)

const installGlobally = (): void => {
  const { root, source, environment } = patient
  runScript([join(source, "scripts/install"), "--global"], { cwd: root, env: environment })
  put(inGlobal("node_modules/@opencode-ai/plugin/package.json"))
}

const findings = async (id: string): Promise<string[]> =>
  (await patient.look(id)).findings.map(({ status, message }) => `${status} ${message}`)

describe("a project that a global copy serves", () => {
  beforeEach(installGlobally)

  test(
    promised(
      "package.D2",
      "a project that a global copy serves is in order, and doctor says which copy serves it and tries its plugins",
    ),
    async () => {
      const { exitCode, report } = patient.examine()
      expect(report.findings.filter(({ status }) => status !== "ok")).toEqual([])
      expect({ exitCode, ...report.summary }).toMatchObject({ exitCode: 0, broken: 0, warning: 0 })
      expect(await findings("files")).toEqual([
        `ok no copy in the project: the one in ${join(patient.home, ".config/opencode")} serves it`,
        expect.stringMatching(/^ok Baton 1\.0\.0, \d+ files, unchanged$/),
      ])
      const plugins = report.findings.filter(({ id }) => id === "plugins")
      expect(plugins.map(({ message }) => message)).toEqual(["thing.ts loads"])
      const prompt = `ok ${inGlobal("prompts/handoff.md")} is the prompt of every compaction`
      expect((await findings("prompts"))[0]).toBe(prompt)
    },
  )

  test(promised("package.D2", "a project is broken where the global copy that serves it is"), async () => {
    rmSync(inGlobal("baton/ledger/embedded/main.ts"))
    writeFileSync(inGlobal("plugins/thing.ts"), "import '../baton/other.ts'\nimport { x } from \"../baton/x.ts\"\n")
    expect(await findings("files")).toEqual(
      expect.arrayContaining([
        "broken files of Baton are missing: .opencode/baton/ledger/embedded/main.ts",
        "broken files of Baton are not as they were installed: .opencode/plugins/thing.ts",
      ]),
    )
    expect((await findings("plugins"))[0]).toMatch(/^broken the plugins are not tried/)
  })

  test(
    promised(
      "package.D2",
      "a project that a global copy serves has that copy's policy and settings, unless it has its own",
    ),
    async () => {
      put(inGlobal("pass-over.json"), '{ "$schema": "x" }\n')
      put(inGlobal("baton.json"), "{")
      expect((await findings("passes"))[0]).toContain(inGlobal("pass-over.json"))
      const [found] = (await patient.look("settings")).findings
      expect(found).toMatchObject({
        status: "warning",
        fix: expect.stringContaining(`Mend ${inGlobal("baton.json")}.`),
      })
      patient.write(".opencode/baton.json", "{}")
      expect(await findings("settings")).toEqual(["ok .opencode/baton.json is in order"])
    },
  )
})

describe("what doctor tells to type", () => {
  const fixesOf = async (id: string) => (await patient.look(id)).findings.map(({ fix }) => fix)

  beforeEach(() => {
    patient.write(".opencode/state/outbox/1767323045000-000000-a.json", "{}")
    patient.write(".opencode/state/handoffs/handoff-1.json", "{")
    patient.program("prog", "echo I make progress bars\n")
  })

  test(promised("package.D2", "what doctor tells to type is in the global copy that serves"), async () => {
    installGlobally()
    const baton = inGlobal("baton/bin/baton")
    expect((await fixesOf("outbox"))[0]).toMatch(new RegExp(`^Run ${baton} outbox retry,`))
    expect((await fixesOf("handoffs"))[0]).toContain(`; ${baton} handoffs lists`)
    expect(await fixesOf("ledger")).toContainEqual(expect.stringContaining(`write ${inGlobal("baton/bin/prog")}.`))
  })

  test(promised("package.D2", "what doctor tells to type is the command of the package that serves"), async () => {
    patient.write("opencode.json", `{ "plugin": ["${ENTRY}"] }`)
    expect((await fixesOf("outbox"))[0]).toMatch(new RegExp(`^Run npx ${ENTRY} outbox retry,`))
  })

  test(promised("install.E2", "what doctor tells to type is there in a sub-folder of the project"), () => {
    patient.install()
    mkdirSync(join(patient.project, "src/deep"), { recursive: true })
    const options = { cwd: join(patient.project, "src/deep"), env: patient.environment }
    const { stdout } = runScript([join(REPOSITORY, "scripts/doctor")], options)
    expect(stdout).toContain("Run ../../.opencode/baton/bin/baton outbox retry,")
    expect(stdout).toContain("write ../../.opencode/baton/bin/prog.")
  })
})

test(
  promised("package.D2", "a package that opencode.json names serves from OpenCode's cache, once it is there"),
  async () => {
    patient.write("opencode.jsonc", `{\n  // "baton-opencode@9.9.9"\n  "plugin": ["mine", "${ENTRY}"]\n}\n`)
    expect(await findings("files")).toEqual([
      `ok no copy in the project: OpenCode loads the plugin ${ENTRY} that opencode.json names`,
    ])
    expect(await findings("plugins")).toEqual([`warning ${ENTRY} is not fetched from npm yet`])
    const fetched = join(patient.home, ".cache/opencode/packages", ENTRY, "node_modules/baton-opencode")
    put(join(fetched, ".opencode/plugins/thing.ts"), 'import { createThing } from "../baton/host/thing.ts"\n')
    expect(await findings("plugins")).toEqual([`ok ${ENTRY} is fetched from npm (${fetched})`])
    installGlobally()
    const second = `warning a second copy of Baton is loaded as well: ${ENTRY} in opencode.json`
    expect((await findings("copies"))[0]).toBe(second)
  },
)

test(promised("package.D2", "a project that nothing serves is told how to install"), async () => {
  const { report } = patient.examine()
  const [found] = report.findings.filter(({ id }) => id === "files")
  const message = `no Baton in ${patient.project}: there is no .opencode/baton`
  expect(found).toMatchObject({ status: "broken", message, fix: expect.stringContaining("npx baton-opencode init") })
  expect(report.findings.map(({ id }) => id)).toEqual(["opencode", "environment", "files"])
})
