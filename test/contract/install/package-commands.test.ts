import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeEach, describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { snapshotTree } from "../../support/files/folder-tree.ts"
import {
  createSmallCheckout,
  runScript,
  runWithSignal,
  type SmallCheckout,
} from "../../support/files/small-checkout.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"
import { writeFiles } from "../../support/opencode/pass-project.ts"

const POLICY = ".opencode/pass-over.json"
const SETTINGS = ".opencode/baton.json"

let checkout: SmallCheckout
/** The only folder on PATH beside Node's. */
let programs: string

beforeEach(() => {
  checkout = createSmallCheckout()
  checkout.ship(POLICY, "{}\n")
  programs = join(checkout.root, "programs")
  for (const name of ["programs", "home"]) mkdirSync(join(checkout.root, name))
})

const home = (path = ""): string => join(checkout.root, "home", path)
const command = () => [process.execPath, join(checkout.source, "scripts/lib/cli.mjs")] as const
const surroundings = () => ({ cwd: checkout.project, env: { PATH: programs, HOME: home(), TMPDIR: home() } })

const baton = (...args: string[]) => runScript([...command(), ...args], surroundings())

const openCode = (version: string): void =>
  writeFileSync(join(programs, "opencode"), `#!/bin/sh\necho ${version}\n`, { mode: 0o755 })

/** Gives the command a terminal and types these answers. */
const onTerminal = (answers: string, ...args: string[]): string => {
  const line = [...command(), ...args].map((word) => `'${word}'`).join(" ")
  const { env, cwd } = surroundings()
  const typing = `printf '${answers}' | script -qefc "${line}" /dev/null`
  return runScript(["/bin/sh", "-c", typing], { cwd, env: { ...env, PATH: `${programs}:/usr/bin:/bin` } }).stdout
}

describe("init", () => {
  test(
    promised("package.A3", "init asks nothing without a terminal, and ends with three lines for the next steps"),
    () => {
      openCode("1.18.33")
      const { exitCode, stdout, stderr } = baton("init")
      expect({ exitCode, stderr, isAsked: stdout.includes("[Y/n]") }).toEqual({
        exitCode: 0,
        stderr: "",
        isAsked: false,
      })
      expect(JSON.parse(checkout.read(SETTINGS))).toEqual({ autoTask: true })
      expect(checkout.has(POLICY)).toBe(true)
      const [next, ...lines] = stdout.trimEnd().split("\n").slice(-4)
      expect(next).toBe("Next:")
      expect(lines[0]).toBe(`  cd ${checkout.project} && opencode`)
      expect(lines[1]).toContain("your first message becomes a task")
      expect(lines[2]).toBe(`  npx baton-opencode doctor ${checkout.project}`)
    },
  )

  test.each([
    ["Enter", "\\n\\n", true, true],
    ["no and yes", "n\\ny\\n", false, true],
    ["yes and no", "y\\nNo\\n", true, false],
  ])(promised("package.A3", "init asks two things on a terminal: %s"), (_, answers, autoTask, passOver) => {
    const said = onTerminal(answers, "init")
    expect(said.split("[Y/n]")).toHaveLength(3)
    const asked = said.split(/\r?\n/).filter((line) => /^(?:Baton keeps|Make your|With the tool|Let agents)/.test(line))
    expect(asked.map((line) => line.split(" ")[0])).toEqual(["Baton", "Make", "With", "Let"])
    expect([checkout.has(SETTINGS), checkout.has(POLICY)]).toEqual([autoTask, passOver])
    expect(said.includes("your first message becomes a task")).toBe(autoTask)
    expect(onTerminal("", "init"), "the second time").not.toContain("[Y/n]")
    expect(onTerminal("", "update")).toContain("Nothing to do")
    expect([checkout.has(SETTINGS), checkout.has(POLICY)]).toEqual([autoTask, passOver])
    baton("uninstall")
    expect(snapshotTree(checkout.project)).toEqual({})
  })

  test(promised("package.A3", "init changes nothing when its questions are left with Ctrl-D"), () => {
    expect(onTerminal("\\004", "init")).toContain("[Y/n]")
    expect(snapshotTree(checkout.project)).toEqual({})
  })

  test(
    promised("package.A3", "init takes the answers as options, and leaves settings that are there as they are"),
    () => {
      checkout.write(SETTINGS, '{ "claims": "off" }\n')
      const before = snapshotTree(checkout.project)
      expect(baton("init", "--no-pass-over").exitCode).toBe(0)
      expect([checkout.read(SETTINGS), checkout.has(POLICY)]).toEqual(['{ "claims": "off" }\n', false])
      baton("uninstall")
      expect(snapshotTree(checkout.project)).toEqual(before)
      rmSync(join(checkout.project, SETTINGS))
      expect(baton("init", "--no-auto-task").stdout).toContain('  .opencode/baton/bin/prog add "TITLE" prints an ID')
      expect([checkout.has(SETTINGS), checkout.has(POLICY)]).toEqual([false, true])
    },
  )

  const autoTask = (): unknown => JSON.parse(checkout.read(SETTINGS)).autoTask

  test(promised("people.D2", "init follows the options of a later run, and leaves nothing behind at its end"), () => {
    baton("init")
    expect(baton("init", "--no-auto-task", "--no-pass-over").exitCode).toBe(0)
    expect([autoTask(), checkout.has(POLICY)]).toEqual([false, false])
    expect(baton("init").stdout).toContain("Nothing to do")
    expect(baton("update").stdout).toContain("Nothing to do")
    expect([autoTask(), checkout.has(POLICY)]).toEqual([false, false])
    baton("init", "--auto-task", "--pass-over")
    expect([autoTask(), checkout.has(POLICY)]).toEqual([true, true])
    rmSync(join(checkout.project, SETTINGS))
    baton("init", "--auto-task")
    expect(autoTask()).toBe(true)
    baton("uninstall")
    expect(snapshotTree(checkout.project)).toEqual({})
  })

  test(
    promised("people.D2", "init follows options in settings that the user changed, or says what to do instead"),
    () => {
      baton("init")
      checkout.write(SETTINGS, '{\n  // ours\n  "autoTask": true,\n  "claims": "off",\n}\n')
      baton("init", "--no-auto-task")
      expect(checkout.read(SETTINGS)).toBe('{\n  // ours\n  "autoTask": false,\n  "claims": "off",\n}\n')
      checkout.write(SETTINGS, '{ "claims": "off" }\n')
      checkout.write(POLICY, '{ "enabled": true }\n')
      const { stdout } = baton("init", "--auto-task", "--no-pass-over")
      const at = (path: string) => join(checkout.project, path)
      expect(stdout).toContain(
        `Settings: --auto-task changes nothing, they are yours. Set "autoTask": true in ${at(SETTINGS)}\n`,
      )
      expect(stdout).toContain(`the policy is yours. Delete ${at(POLICY)} to have none\n`)
      expect([checkout.read(SETTINGS), checkout.has(POLICY)]).toEqual(['{ "claims": "off" }\n', true])
      for (const option of ["--auto-task", "--no-pass-over"])
        expect(baton("update", option)).toMatchObject({ exitCode: 2 })
    },
  )

  const killAt = (at: string, ...args: string[]): void => {
    const { exitCode } = runWithSignal(`${at} SIGKILL`, [command()[1], ...args], surroundings())
    expect(exitCode, at).toBe(null)
  }

  // Renames in order: the manifest, the policy if it is wanted, ten files, the settings if they are wanted, the manifest.
  test.each([
    ["renameSync 2", [], ["init"], true, true],
    ["renameSync 13", [], ["update"], true, true],
    ["renameSync 14", [], ["init"], true, true],
    ["renameSync 2", ["--no-auto-task"], ["init"], false, true],
    ["renameSync 2", ["--no-pass-over"], ["update"], true, false],
    ["renameSync 12", ["--no-pass-over"], ["init", "--no-pass-over"], true, false],
  ] as const)(
    promised(
      ["package.A3", "install.F1"],
      "an init that was killed at %s with the answers %j is finished with them by %j",
    ),
    (at, answers, again, autoTask, passOver) => {
      killAt(at, "init", ...answers)
      expect(baton(...again).exitCode).toBe(0)
      expect([checkout.has(SETTINGS), checkout.has(POLICY)]).toEqual([autoTask, passOver])
      for (const path of [SETTINGS, POLICY]) rmSync(join(checkout.project, path), { force: true })
      baton("update")
      expect([checkout.has(SETTINGS), checkout.has(POLICY)], "deleted by the user").toEqual([false, false])
      baton("uninstall")
      expect(snapshotTree(checkout.project)).toEqual({})
    },
  )

  test(promised(["package.A3", "install.F1"], "an init that was killed takes a no that is given later"), () => {
    killAt("renameSync 2", "init")
    killAt("renameSync 2", "init", "--no-auto-task", "--no-pass-over")
    baton("init")
    expect([checkout.has(SETTINGS), checkout.has(POLICY)]).toEqual([false, false])
  })

  // Removed in order: the manifest's temporary name, the policy, eight files, the settings.
  test.each([
    ["rmSync 4", "init"],
    ["rmSync 12", "init"],
    ["rmdirSync 1", "init"],
    ["rmSync 12", "update"],
  ])(
    promised("people.C4", "an uninstall that was killed at %s is no decision on policy and settings: %s"),
    (at, again) => {
      baton("init")
      const installed = snapshotTree(checkout.project)
      killAt(at, "uninstall")
      // A second one that is killed at its start forgets nothing of the first.
      killAt("rmSync 2", "uninstall")
      expect(baton(again).exitCode).toBe(0)
      expect([checkout.has(SETTINGS), checkout.has(POLICY)]).toEqual([true, true])
      expect(snapshotTree(checkout.project)).toEqual(installed)
      killAt(at, "uninstall")
      baton("uninstall")
      expect(snapshotTree(checkout.project)).toEqual({})
    },
  )

  test(promised("people.C4", "what the user deleted before an uninstall that was killed stays away"), () => {
    baton("init")
    for (const path of [SETTINGS, POLICY]) rmSync(join(checkout.project, path))
    killAt("rmSync 5", "uninstall")
    baton("init")
    expect([checkout.has(SETTINGS), checkout.has(POLICY)]).toEqual([false, false])
  })

  const MISSING = "not there yet on OpenCode 2: handoff, live state, passes."
  const REPORT = "If something fails, report it"
  const RUN_ON = "Baton is run on 1.2.15 to 1.18.33 and 2.0.15"

  test.each([
    ["2.0.15", [MISSING]],
    ["2.3.0", ["newer than 2.0.15", REPORT, MISSING]],
    ["1.19.1", ["newer than 1.18.33", REPORT]],
    ["2.0.1", [RUN_ON]],
    ["1.2.9", [RUN_ON]],
    ["10.0.1", [RUN_ON]],
  ])(promised("package.A7", "init says of OpenCode %s: %j"), (version, parts) => {
    // As each line prints it.
    openCode(version.startsWith("2") ? `opencode v${version}` : version)
    for (const name of ["init", "update"]) {
      const { exitCode, stdout } = baton(name)
      expect(exitCode).toBe(0)
      expect(stdout.split(`${join(programs, "opencode")} is ${version}`), "told once").toHaveLength(2)
      for (const part of [MISSING, REPORT, RUN_ON]) expect(stdout.includes(part), part).toBe(parts.includes(part))
      for (const part of parts) expect(stdout).toContain(part)
      if (name === "init") expect(stdout.indexOf("Next:")).toBeGreaterThan(stdout.indexOf(version))
    }
  })

  test(promised("package.A7", "init says where OpenCode comes from when there is none, and nothing else of it"), () => {
    expect(baton("init").stdout).toMatch(/^OpenCode: none is on PATH. Baton is run on 1\.2\.15 .*opencode\.ai\/docs$/m)
    openCode("1.18.33")
    expect(baton("update").stdout).not.toContain("OpenCode")
  })
})

describe("update", () => {
  test(promised("package.A2", "update keeps what the user changed and shows the difference until it is merged"), () => {
    baton("init")
    checkout.write("prompts/handoff.md", "<!-- baton:handoff -->\nWrite the handoff.\nIn French.\n")
    checkout.ship("prompts/handoff.md", "<!-- baton:handoff -->\nWrite the whole handoff.\n")
    const lines = ["  <!-- baton:handoff -->", "- Write the handoff.", "- In French.", "+ Write the whole handoff."]
    const difference = ["prompts/handoff.md: yours (-), the new version (+)", ...lines].join("\n  ")
    for (const args of [["--dry-run"], [], []]) {
      const { exitCode, stdout } = baton("update", ...args)
      expect(exitCode).toBe(0)
      expect(stdout).toContain(`${difference}\n`)
    }
    expect(checkout.read("prompts/handoff.md")).toContain("In French.")
    checkout.write("prompts/handoff.md", checkout.read("prompts/handoff.md.baton-new"))
    expect(baton("update").stdout).not.toContain("yours (-)")
    expect(checkout.has("prompts/handoff.md.baton-new")).toBe(false)
  })

  test(promised("package.A2", "update keeps settings that init wrote, changed or deleted, and does not ask"), () => {
    baton("init")
    baton("update")
    expect(checkout.read(SETTINGS)).toContain("autoTask")
    checkout.write(SETTINGS, '{ "autoTask": false }\n')
    baton("update")
    expect(checkout.read(SETTINGS)).toBe('{ "autoTask": false }\n')
    rmSync(join(checkout.project, SETTINGS))
    baton("update")
    expect(checkout.has(SETTINGS)).toBe(false)
  })

  test(promised("package.A2", "update refuses a project without Baton, and changes nothing"), () => {
    expect(baton("update")).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("nothing to update") })
    expect(snapshotTree(checkout.project)).toEqual({})
  })
})

describe("--global", () => {
  const GLOBAL = ".config/opencode"

  test(
    promised("package.A4", "--global installs into OpenCode's folder, and takes out no more than it put there"),
    () => {
      const mine = ["opencode.json", "state/mine.json", "prompts/mine.md"]
      writeFiles(home(GLOBAL), Object.fromEntries(mine.map((path) => [path, "mine\n"])))
      const before = snapshotTree(home(GLOBAL))
      expect(baton("init", "--global")).toMatchObject({ exitCode: 0, stderr: "" })
      const files = ["plugins/thing.ts", "baton/host/thing.ts", "baton/.manifest", "prompts/worker.md"]
      const installed = Object.keys(snapshotTree(home(GLOBAL)))
      expect(installed).toEqual(expect.arrayContaining([...files, "pass-over.json", "baton.json"]))
      expect(snapshotTree(checkout.project)).toEqual({})
      writeFileSync(home(`${GLOBAL}/prompts/worker.md`), "<!-- baton:brief -->\nMine.\n")
      checkout.ship("prompts/worker.md", "<!-- baton:brief -->\nNew.\n")
      expect(baton("update", "--global").stdout).toContain("  - Mine.\n  + New.")
      rmSync(home(`${GLOBAL}/prompts/worker.md`))
      expect(baton("uninstall", "--global", "--purge")).toMatchObject({ exitCode: 0, stderr: "" })
      expect(snapshotTree(home(GLOBAL))).toEqual(before)
    },
  )

  test(promised("package.A4", "--global ends with the line that puts its programs on PATH"), () => {
    const options = { cwd: checkout.root, env: { ...process.env, HOME: home(), XDG_CONFIG_HOME: "" } }
    const { stdout } = runScript([join(REPOSITORY, "scripts/install"), "--global"], options)
    const [, line = ""] = /^ {2}prog and baton in your shell: (eval .*)$/m.exec(stdout) ?? []
    const found = runScript(["sh", "-c", `${line}; command -v prog; command -v baton`], options)
    const paths = ["prog", "baton"].map((name) => home(`${GLOBAL}/baton/bin/${name}`))
    expect(found.stdout.trimEnd().split("\n")).toEqual(paths)
  })

  test(promised("package.A4", "--global makes the folder where there is none, and removes it again"), () => {
    const elsewhere = { ...surroundings().env, XDG_CONFIG_HOME: home("elsewhere") }
    const run = (...args: string[]) => runScript([...command(), ...args], { cwd: checkout.project, env: elsewhere })
    expect(run("init", "--global", "--dry-run").exitCode).toBe(0)
    expect(existsSync(home("elsewhere"))).toBe(false)
    run("init", "--global")
    expect(readFileSync(home("elsewhere/opencode/prompts/handoff.md"), "utf8")).toContain("Write the handoff.")
    run("uninstall", "--global")
    expect(existsSync(home("elsewhere/opencode"))).toBe(false)
    const stderr = expect.stringContaining("takes no folder")
    expect(run("init", "project", "--global")).toMatchObject({ exitCode: 2, stderr })
  })
})
