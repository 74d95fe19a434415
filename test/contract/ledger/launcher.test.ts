import { copyFileSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { createLedgerDriver } from "../../support/ledger/ledger-driver.ts"
import { embeddedProgram, LAUNCHER, runProgram, SYSTEM_PATH } from "../../support/ledger/ledger-process.ts"
import { findRealProg, registerMissingRealProg } from "../../support/ledger/ledger-real.ts"
import { ALL_LINES, NEWEST, REPOSITORY } from "../../support/opencode/opencode-binary.ts"

const MODULE = "github.com/baiirun/prog"

const writeProgram = (path: string, text: string): void => writeFileSync(path, text, { mode: 0o755 })

/** A folder of PATH, with a space in its name, that holds one program. */
const folderWith = (name: string, text: string): string => {
  const folder = join(temporaryFolder(), "a folder")
  mkdirSync(folder)
  writeProgram(join(folder, name), text)
  return folder
}

/** Stands for the real prog where it only matters that it is chosen: its file names the module, as a Go program does. */
const CHOSEN = `#!/bin/sh\n: ${MODULE}\nprintf 'real:'; printf ' <%s>' "$@"; echo\nexit 7\n`
const FOREIGN = "#!/bin/sh\necho a video player\n"

type LaunchOptions = { path?: string[]; environment?: Record<string, string>; launcher?: string; home?: string }

const launch = (
  args: readonly string[],
  { path = [], environment = {}, launcher = LAUNCHER, home = temporaryFolder() }: LaunchOptions = {},
) => {
  const PATH = [...path, SYSTEM_PATH].join(":")
  return runProgram({ command: launcher, environment: { PATH, ...environment } }, { home })(args)
}

const RUNTIME = { BATON_RUNTIME: NEWEST.path }
const EMBEDDED = "prog version 0.17.0 (Baton's embedded ledger, prog schema 3)\n"

describe("the launcher", () => {
  test(promised("ledger.D4", "a prog on PATH is taken, with its arguments and its exit code"), async () => {
    const { exitCode, stdout } = await launch(["log", "a b", "--", "-x", ""], { path: [folderWith("prog", CHOSEN)] })
    expect({ exitCode, stdout }).toStrictEqual({ exitCode: 7, stdout: "real: <log> <a b> <--> <-x> <>\n" })
    const wrapper = folderWith("prog", '#!/bin/sh\nPROG_DB=/team.db; echo "team:" "$@"\n')
    expect((await launch(["x"], { path: [wrapper], environment: RUNTIME })).stdout, "a script").toBe("team: x\n")
  })

  test(promised("ledger.D4", "another program and what lies in a relative folder are passed by"), async () => {
    const home = temporaryFolder()
    writeProgram(join(home, "prog"), CHOSEN)
    expect((await launch(["--version"], { path: ["", "."], environment: RUNTIME, home })).stdout).toBe(EMBEDDED)
    const foreign = folderWith("prog", FOREIGN)
    expect((await launch(["--version"], { path: [foreign], environment: RUNTIME })).stdout).toBe(EMBEDDED)
    const both = await launch(["x"], { path: [foreign, folderWith("prog", CHOSEN)] })
    expect(both.stdout).toBe("real: <x>\n")
  })

  test(promised("ledger.D4", "the launcher never takes itself, a copy of itself or a link to itself"), async () => {
    const [copied, linked] = [temporaryFolder(), temporaryFolder()]
    copyFileSync(LAUNCHER, join(copied, "prog"))
    symlinkSync(LAUNCHER, join(linked, "prog"))
    const path = [join(LAUNCHER, ".."), copied, linked]
    expect((await launch(["--version"], { path, environment: RUNTIME })).stdout).toBe(EMBEDDED)
    const found = await launch(["x"], { path: [...path, folderWith("prog", CHOSEN)] })
    expect(found.stdout).toBe("real: <x>\n")
  })

  test(
    promised("ledger.D4", "the launcher finds the embedded ledger through links, and in a folder with spaces"),
    async () => {
      const folder = join(temporaryFolder(), "my project")
      cpSync(join(REPOSITORY, ".opencode", "baton"), join(folder, ".opencode", "baton"), { recursive: true })
      const programs = temporaryFolder()
      symlinkSync(join(folder, ".opencode", "baton", "bin", "prog"), join(programs, "second"))
      symlinkSync("second", join(programs, "prog"))
      const { stdout } = await launch(["--version"], { launcher: join(programs, "prog"), environment: RUNTIME })
      expect(stdout).toBe(EMBEDDED)
    },
  )

  test(promised("ledger.D4", "BATON_LEDGER forces a ledger, and a value that is not known is refused"), async () => {
    const path = [folderWith("prog", CHOSEN)]
    const embedded = await launch(["--version"], { path, environment: { ...RUNTIME, BATON_LEDGER: "embedded" } })
    expect(embedded.stdout).toBe(EMBEDDED)
    const foreign = folderWith("prog", FOREIGN)
    const none = await launch(["x"], { path: [foreign], environment: { ...RUNTIME, BATON_LEDGER: "real" } })
    expect(none.exitCode).toBe(127)
    expect(none.stderr).toContain(`BATON_LEDGER=real, but no prog of ${MODULE} is on PATH`)
    expect(none.stderr).toContain(`(${foreign}/prog is another program)`)
    const unknown = await launch(["x"], { environment: { BATON_LEDGER: "both" } })
    expect(unknown.stderr).toBe('Error: BATON_LEDGER is "both"; expected "real", "embedded" or nothing\n')
  })

  test(
    promised(
      "ledger.D4",
      "bun, else opencode, runs the embedded ledger; without either the launcher says what to install",
    ),
    async () => {
      const printed = (name: string) =>
        `#!/bin/sh\necho ${name} BUN_BE_BUN=$BUN_BE_BUN "$1" "$2" "$3" "$4" "$5" "$7" "$8"\n`
      const [bun, opencode] = [folderWith("bun", printed("bun")), folderWith("opencode", printed("opencode"))]
      const rest =
        "BUN_BE_BUN=1 --env-file=/dev/null --config=/dev/null --tsconfig-override=/dev run --no-install -- x\n"
      expect((await launch(["x"], { path: [opencode, bun] })).stdout).toBe(`bun ${rest}`)
      expect((await launch(["x"], { path: [opencode] })).stdout).toBe(`opencode ${rest}`)
      const gone = { BATON_RUNTIME: "/nowhere/opencode" }
      expect((await launch(["x"], { path: [opencode], environment: gone })).stdout).toBe(`opencode ${rest}`)
      const none = await launch(["x"], { environment: gone })
      expect(none.exitCode).toBe(127)
      const needed = "prog, OpenCode or Bun on PATH, or the OpenCode binary's path in BATON_OPENCODE"
      const named = `(it is "", and BATON_RUNTIME is "/nowhere/opencode")`
      expect(none.stderr).toBe(`Error: the ledger needs ${needed} ${named}\n`)
    },
  )

  test(promised("ledger.D4", "the OpenCode that runs goes first, then the named one, then PATH"), async () => {
    const printed = (name: string) => `#!/bin/sh\necho ${name}\n`
    const folder = (name: string) => folderWith("opencode", printed(name))
    const [running, named, onPath] = [folder("running"), folder("named"), folder("on PATH")]
    const home = temporaryFolder()
    mkdirSync(join(home, ".opencode", "bin"), { recursive: true })
    writeProgram(join(home, ".opencode", "bin", "opencode"), printed("installed"))
    const run = async (environment: Record<string, string>, path = [onPath]): Promise<string> =>
      (await launch(["x"], { path, environment, home })).stdout
    const BATON_OPENCODE = `${named}/opencode`
    expect(await run({ BATON_RUNTIME: `${running}/opencode`, BATON_OPENCODE })).toBe("running\n")
    expect(await run({ BATON_OPENCODE })).toBe("named\n")
    expect(await run({ BATON_OPENCODE: "/nowhere/opencode" })).toBe("on PATH\n")
    expect(await run({}, [])).toBe("installed\n")
  })

  test.each(ALL_LINES)(
    promised("ledger.D4", "on $version standard input reaches the ledger, no .env"),
    async (binary) => {
      const home = temporaryFolder()
      writeFileSync(join(home, ".env"), "PROG_DB=/nowhere/else.db\n")
      writeFileSync(join(home, "bunfig.toml"), 'preload = ["./preload.ts"]\n')
      writeFileSync(join(home, "preload.ts"), 'console.log("preloaded")\n')
      const ledger = createLedgerDriver(runProgram(embeddedProgram(binary), { home }))
      expect(await ledger.ok("init")).toBe(`Initialized prog database at ${join(home, ".prog", "prog.db")}`)
      const line = ["learn", "S", "-p", "demo", "-c", "a", "--detail", "-"]
      const id = await ledger.okWith({ stdin: "\n  several\nlines 🙂 \n\n" }, ...line)
      expect(await ledger.json("context", "--id", id, "--json")).toMatchObject([{ detail: "several\nlines 🙂" }])
      expect(await ledger.fails("context", "--id", "lrn-000000")).toMatch(/^Error: .*lrn-000000/)
    },
  )

  test(promised("ledger.D4", "a signal reaches the ledger, since the launcher becomes it"), async () => {
    const pid = folderWith("prog", `#!/bin/sh\n: ${MODULE}\nkill -TERM $$\n`)
    await expect(launch(["x"], { path: [pid] })).rejects.toThrow("ended by SIGTERM")
  })
})

const real = findRealProg()

if (real.kind === "found") {
  test(promised("ledger.D4", "the real prog is recognised by its content"), async () => {
    const folder = temporaryFolder()
    symlinkSync(real.program.command, join(folder, "prog"))
    const { stdout } = await launch(["--help"], { path: [folder], environment: RUNTIME })
    expect(stdout).toContain("prog onboard")
  })
} else registerMissingRealProg("that the launcher recognises the real prog", real.reason)
