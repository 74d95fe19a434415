import { chmodSync, chownSync, mkdirSync, readdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { beforeEach, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { snapshotTree } from "../../support/files/folder-tree.ts"
import { createSmallCheckout, runScript, type SmallCheckout } from "../../support/files/small-checkout.ts"

/** The user "nobody" on Linux and macOS: containers often run tests as root, which ignores permissions. */
const NOBODY = 65534

let checkout: SmallCheckout

beforeEach(() => {
  checkout = createSmallCheckout()
})

const script = () => join(checkout.source, "scripts/install")
const run = (...args: string[]) => runScript(["sh", script(), ...args], { cwd: checkout.root })

test.each([
  ["no folder", [], "which project?"],
  ["an unknown option", ["project", "--force"], "unknown option: --force"],
  ["two folders", ["project", "checkout"], "received two: 'project' and 'checkout'"],
  ["an empty folder name", [""], "received an empty name"],
  ["--purge without --uninstall", ["project", "--purge"], "--purge goes with --uninstall"],
  ["a missing folder", ["absent"], "no such folder: 'absent'"],
  ["a file", ["checkout/package.json"], "not a folder: 'checkout/package.json'"],
  ["the checkout itself", ["checkout"], "'checkout' is the checkout of Baton itself"],
  ["an .opencode folder", ["checkout/.opencode"], "name the project that holds it"],
])(promised("install.E1", "refuses %s with exit code 2 and says what it received"), (_, args, message) => {
  const { exitCode, stdout, stderr } = run(...args)
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" })
  expect(stderr).toContain(message)
  expect(stderr).toContain("--help")
  expect(readdirSync(checkout.project)).toEqual([])
})

test(promised("install.E1", "takes a folder whose name starts with a dash after --"), () => {
  mkdirSync(join(checkout.root, "--project"))
  expect(run("--", "--project").exitCode).toBe(0)
  expect(readdirSync(join(checkout.root, "--project"))).toContain("prompts")
})

test.each([".opencode", ".opencode/plugins", ".opencode/baton/host", "prompts"])(
  promised("install.E1", "does not write through a link in place of the folder %s"),
  (folder) => {
    mkdirSync(join(checkout.root, "elsewhere"))
    mkdirSync(join(checkout.project, folder, ".."), { recursive: true })
    symlinkSync(join(checkout.root, "elsewhere"), join(checkout.project, folder))
    const before = snapshotTree(checkout.project)
    const { exitCode, stderr } = checkout.install()
    expect(exitCode).toBe(1)
    expect(stderr).toContain(`${checkout.project}/${folder} is a symbolic link to ${checkout.root}/elsewhere`)
    expect(readdirSync(join(checkout.root, "elsewhere"))).toEqual([])
    expect(snapshotTree(checkout.project)).toEqual(before)
  },
)

test(promised("install.E1", "says that a file stands where a folder must be"), () => {
  checkout.write(".opencode/baton", "a file\n")
  const { exitCode, stderr } = checkout.install()
  expect(exitCode).toBe(1)
  expect(stderr).toContain(`${checkout.project}/.opencode/baton is not a folder. Nothing was changed`)
  expect(Object.keys(snapshotTree(checkout.project))).toEqual([".opencode", ".opencode/baton"])
})

test(promised("install.E1", "says that a project is read-only, and changes nothing"), () => {
  const root = process.getuid?.() === 0
  if (root) chownSync(checkout.project, NOBODY, NOBODY)
  chmodSync(checkout.project, 0o555)
  const outcome = runScript(["sh", script(), checkout.project], {
    cwd: checkout.root,
    ...(root ? { uid: NOBODY } : {}),
  })
  chmodSync(checkout.project, 0o755)
  expect(outcome.exitCode).toBe(1)
  expect(outcome.stderr).toContain("Nothing was changed. Make it writable")
  expect(readdirSync(checkout.project)).toEqual([])
})

test(promised("install.E1", "says that a checkout is incomplete"), () => {
  runScript(["rm", "-r", join(checkout.source, ".opencode/baton"), join(checkout.source, "prompts")])
  expect(checkout.install()).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("no .opencode/baton in") })
})
