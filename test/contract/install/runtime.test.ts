import { chmodSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { beforeEach, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { createBarePath } from "../../support/files/doctor-patient.ts"
import { snapshotTree } from "../../support/files/folder-tree.ts"
import { createSmallCheckout, type Outcome, runScript, type SmallCheckout } from "../../support/files/small-checkout.ts"
import { BOTH_ENDS, NEWEST } from "../../support/opencode/opencode-binary.ts"

let checkout: SmallCheckout
/** The only folder on PATH. */
let bare: string

beforeEach(() => {
  checkout = createSmallCheckout()
  bare = createBarePath(checkout.root)
  mkdirSync(join(checkout.root, "home"))
})

const install = (environment: Record<string, string> = {}, ...args: string[]): Outcome =>
  runScript([join(checkout.source, "scripts/install"), ...args, "project"], {
    cwd: checkout.root,
    env: { PATH: bare, HOME: join(checkout.root, "home"), ...environment },
  })

const link = (target: string, path: string): void => {
  mkdirSync(dirname(path), { recursive: true })
  symlinkSync(target, path)
}

/** A program, and where a link to it lies in the checkout's folder; without a place it is named by BATON_OPENCODE. */
const RUNTIMES: [string, string, string?][] = [
  ...BOTH_ENDS.flatMap(({ version, path }): [string, string, string?][] => [
    [`OpenCode ${version} named by BATON_OPENCODE`, path],
    [`OpenCode ${version} on PATH`, path, "bare/opencode"],
  ]),
  ["OpenCode where its installer puts it", NEWEST.path, "home/.opencode/bin/opencode"],
  ["Bun", NEWEST.path, "bare/bun"],
  ["Node", process.execPath, "bare/node"],
]

test.each(RUNTIMES)(promised("install.E5", "Baton is installed and uninstalled with %s alone"), (_, program, place) => {
  if (place !== undefined) link(program, join(checkout.root, place))
  const environment: Record<string, string> = place === undefined ? { BATON_OPENCODE: program } : {}
  const expected = createSmallCheckout()
  expected.install()
  expect(install(environment)).toMatchObject({ exitCode: 0, stderr: "" })
  expect(snapshotTree(checkout.project)).toEqual(snapshotTree(expected.project))
  expect(install(environment, "--purge").exitCode).toBe(2)
  expect(install(environment, "--uninstall", "--")).toMatchObject({ exitCode: 0, stderr: "" })
  expect(snapshotTree(checkout.project)).toEqual({})
})

test(
  promised(
    "install.E5",
    "the launcher says what runtime was looked for where there is none, and passes by what is too old",
  ),
  () => {
    const none =
      "install: nothing here can run the installer. Expected one of: opencode (1.2.15 or newer) on PATH, or named by\n" +
      "  BATON_OPENCODE; bun; node 20 or newer. Install OpenCode, or set BATON_OPENCODE to its binary.\n"
    expect(install()).toEqual({ exitCode: 1, stdout: "", stderr: none })
    const program = (name: string, script: string): void =>
      writeFileSync(join(bare, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    program("opencode", "echo 2.0.0")
    program("bun", "exit 1")
    program("node", '[ "$1" = --version ] && echo v18.20.4 || echo started')
    expect(install()).toEqual({ exitCode: 1, stdout: "", stderr: none })
    expect(snapshotTree(checkout.project)).toEqual({})
  },
)

test(
  promised("install.E5", "the launcher runs nothing from a relative folder of PATH, and goes on to an absolute one"),
  () => {
    writeFileSync(join(checkout.root, "node"), "#!/bin/sh\necho from the project\n", { mode: 0o755 })
    link(process.execPath, join(bare, "node"))
    expect(install({ PATH: `.:${bare}` })).toMatchObject({ exitCode: 0, stderr: "" })
    expect(checkout.has(".opencode/plugins/thing.ts")).toBe(true)
  },
)

test(promised("install.E5", "the launcher reads neither .env nor bunfig.toml of the folder it is called in"), () => {
  checkout.write(".env", "PROG_DB=/from/the/project.db\n")
  checkout.write("bunfig.toml", 'preload = ["./preload.ts"]\n')
  checkout.write("preload.ts", 'throw new Error("preloaded")\n')
  cpSync(checkout.project, checkout.root, { recursive: true })
  chmodSync(checkout.root, 0o755)
  const { exitCode, stdout, stderr } = install({ BATON_OPENCODE: NEWEST.path })
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" })
  expect(stdout).not.toContain("/from/the/project.db")
})
