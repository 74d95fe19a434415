import { createHash } from "node:crypto"
import { chmodSync, chownSync, mkdirSync, readdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { beforeEach, describe, expect, onTestFinished, test } from "vitest"
import { parseManifest } from "../../../.opencode/baton/doctor/installed.ts"
import { promised } from "../../requirements.ts"
import { snapshotTree } from "../../support/files/folder-tree.ts"
import { createSmallCheckout, runScript, type SmallCheckout } from "../../support/files/small-checkout.ts"
import { writeFiles } from "../../support/opencode/pass-project.ts"

const MANIFEST = ".opencode/baton/.manifest"

let checkout: SmallCheckout

beforeEach(() => {
  checkout = createSmallCheckout()
})

const USER_FILES = {
  "opencode.json": '{"model":"mine/model"}',
  ".opencode/package.json": '{"dependencies":{"mine":"1.0.0"}}',
  ".opencode/plugins/mine.ts": "export const Mine = async () => ({})\n",
  "prompts/mine.md": "mine\n",
  "src/index.ts": "export {}\n",
}

describe("an installation into a fresh project", () => {
  test(
    promised(
      "install.E1",
      "an installation into a fresh project copies plugins, shared folder and prompts, and keeps programs executable",
    ),
    () => {
      const { exitCode, stdout, stderr } = checkout.install()
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" })
      const tree = snapshotTree(checkout.project)
      const source = snapshotTree(checkout.source)
      const files = Object.keys(source).filter((path) => /^(\.opencode|prompts)\//.test(path))
      expect(files).toContain(".opencode/baton/bin/tool")
      for (const path of files) expect(tree[path], path).toBe(source[path])
      const made = [".opencode/.npmignore", MANIFEST, "prompts/.npmignore"]
      expect(Object.keys(tree).filter((path) => !(path in source))).toEqual(made)
      expect(stdout).toContain(`cd ${checkout.project} && opencode`)
      expect(stdout).toContain(`scripts/doctor ${checkout.project}`)
    },
  )

  test(
    promised(
      "install.E1",
      "an installation into a fresh project lists each file with its SHA-256 and size, and no litter",
    ),
    () => {
      for (const path of ["host/a.test.ts", "node_modules/x/index.ts", "host/.hidden", "host/a.ts~"])
        checkout.ship(`.opencode/baton/${path}`, "litter")
      checkout.install()
      const tree = Object.keys(snapshotTree(checkout.project))
      expect(tree.filter((path) => /test\.ts|node_modules|hidden|~/.test(path))).toEqual([])
      const lines = checkout.read(MANIFEST).trimEnd().split("\n")
      expect(lines[0]).toBe("# What scripts/install put here: SHA-256, size, path. Baton 1.0.0")
      const files = lines.slice(1).filter((line) => !line.startsWith("dir\t-\t"))
      expect(files).toHaveLength(10)
      for (const line of files) {
        const [sum, size, path = ""] = line.split("\t")
        const text = checkout.read(path)
        expect([sum, size], path).toEqual([createHash("sha256").update(text).digest("hex"), String(text.length)])
      }
    },
  )

  test(
    promised(
      "install.E6",
      "an installation into a fresh project ends with git and the tasks, and at uninstall with how to read them",
    ),
    () => {
      expect(checkout.install("--dry-run").stdout).not.toMatch(/^(Git|Tasks|Next):/m)
      const { stdout } = checkout.install()
      expect(stdout).toMatch(/^Git: commit these files or ignore them, either is fine\.$/m)
      expect(stdout).toMatch(/^Tasks: .* in ~\/\.prog\/prog\.db\.$/m)
      expect(stdout.indexOf("Next:")).toBeGreaterThan(stdout.indexOf("Tasks:"))
      const options = { cwd: checkout.root, env: { ...process.env, PROG_DB: "/elsewhere/tasks.db" } }
      const removed = runScript(["sh", script(), checkout.project, "--uninstall"], options)
      expect(removed.stdout).toMatch(/^Tasks: they stay in \/elsewhere\/tasks\.db\. Read them with prog .* SQLite/m)
      expect(removed.stdout).toContain(".opencode/baton/bin/prog list")
    },
  )

  test(
    promised(
      "install.E4",
      "an installation hides the shared folder from searches, in the project alone, until uninstall",
    ),
    () => {
      checkout.ship(".opencode/baton/ignore", "*\n")
      checkout.install()
      expect(checkout.read(".opencode/baton/.ignore")).toBe("*\n")
      expect(checkout.has(".opencode/baton/ignore")).toBe(false)
      expect(checkout.install().stdout).toContain("Nothing to do")
      checkout.install("--uninstall")
      expect(checkout.has(".opencode/baton")).toBe(false)
    },
  )

  test(
    promised(
      "install.E1",
      "an installation into a fresh project works from a read-only checkout, with spaces and quotes in every path",
    ),
    () => {
      const odd = createSmallCheckout({ source: "check out's", project: "my 'proj' $HOME" })
      onTestFinished(() => void runScript(["chmod", "-R", "u+w", odd.source]))
      runScript(["chmod", "-R", "a-w", odd.source])
      const { exitCode, stdout } = odd.install()
      expect(exitCode).toBe(0)
      expect(odd.read("prompts/handoff.md")).toContain("Write the handoff.")
      const [, hint] = /^ {2}cd (.*) && opencode$/m.exec(stdout) ?? []
      expect(runScript(["sh", "-c", `cd ${hint} && pwd`]).stdout.trim()).toBe(odd.project)
      expect(odd.install("--uninstall").exitCode).toBe(0)
      expect(snapshotTree(odd.project)).toEqual({})
    },
  )

  test(
    promised(
      "install.E1",
      "an installation into a fresh project takes a relative DIR, through links to script and project, or behind --",
    ),
    () => {
      symlinkSync(join(checkout.source, "scripts", "install"), join(checkout.root, "install-baton"))
      symlinkSync(checkout.project, join(checkout.root, "linked"))
      const outcome = runScript(["sh", "./install-baton", "linked"], { cwd: checkout.root })
      expect(outcome.exitCode).toBe(0)
      expect(checkout.has(".opencode/plugins/thing.ts")).toBe(true)
      mkdirSync(join(checkout.root, "--project"))
      expect(run("--", "--project").exitCode).toBe(0)
      expect(readdirSync(join(checkout.root, "--project"))).toContain("prompts")
    },
  )
})

describe("the user's own work", () => {
  test(
    promised("install.E1", "the user's own work is untouched, and uninstall gives the tree back byte for byte"),
    () => {
      writeFiles(checkout.project, USER_FILES)
      chmodSync(join(checkout.project, "src/index.ts"), 0o600)
      const before = snapshotTree(checkout.project)
      expect(checkout.install().exitCode).toBe(0)
      for (const [path, text] of Object.entries(USER_FILES)) expect(checkout.read(path), path).toBe(text)
      expect(checkout.install("--uninstall").exitCode).toBe(0)
      expect(snapshotTree(checkout.project)).toEqual(before)
      expect(checkout.install("--uninstall").stdout).toContain("Nothing to do")
    },
  )

  test(
    promised("install.E1", "an installation keeps a prompt that was there before and puts the new one beside it"),
    () => {
      const mine = "# Worker\n\n<!-- baton:protocol -->\nmine\n<!-- /baton:protocol -->\n"
      checkout.write("prompts/worker.md", mine)
      // It equals the new one.
      checkout.write("prompts/handoff.md", "<!-- baton:handoff -->\nWrite the handoff.\n")
      const before = snapshotTree(checkout.project)
      const { exitCode, stdout } = checkout.install()
      expect(exitCode).toBe(0)
      expect(stdout).toMatch(/keep +prompts\/worker\.md: it was yours before.*worker\.md\.baton-new/)
      expect(checkout.read("prompts/worker.md")).toBe(mine)
      expect(checkout.read("prompts/worker.md.baton-new")).toMatch(/^# Worker\n\nTask: /)
      checkout.install("--uninstall")
      expect(snapshotTree(checkout.project)).toEqual(before)
    },
  )

  test.each([".opencode/.npmignore", "prompts/.npmignore"])(
    promised("install.E1", "an installation takes what it put beside the user's own %s out again"),
    (path) => {
      checkout.write("prompts/handoff.md", "<!-- baton:handoff -->\nWrite the handoff.\n")
      checkout.write(path, "mine\n")
      const before = snapshotTree(checkout.project)
      checkout.install()
      expect(checkout.has(`${path}.baton-new`)).toBe(true)
      expect(parseManifest(checkout.read(MANIFEST)).files.has(`${path}.baton-new`)).toBe(true)
      checkout.install("--uninstall")
      expect(snapshotTree(checkout.project)).toEqual(before)
    },
  )

  test(promised("install.E1", "an installation keeps a link in place of a file and does not write through it"), () => {
    checkout.write("elsewhere.md", "<!-- baton:handoff -->\nshared\n")
    checkout.link("../elsewhere.md", "prompts/handoff.md")
    checkout.install()
    expect(checkout.read("elsewhere.md")).toBe("<!-- baton:handoff -->\nshared\n")
    expect(checkout.has("prompts/handoff.md.baton-new")).toBe(true)
  })
})

test(
  promised("install.E1", "--dry-run changes nothing, for install, upgrade and uninstall, and names each file"),
  () => {
    expect(checkout.install("--dry-run").stdout).toMatch(/add +\.opencode\/plugins\/thing\.ts/)
    expect(snapshotTree(checkout.project)).toEqual({})
    checkout.install()
    checkout.ship("prompts/handoff.md", "Newer.\n")
    const before = snapshotTree(checkout.project)
    expect(checkout.install("--dry-run").stdout).toMatch(/update +prompts\/handoff\.md/)
    expect(checkout.install("--uninstall", "--dry-run").stdout).toMatch(/remove +prompts\/handoff\.md/)
    expect(snapshotTree(checkout.project)).toEqual(before)
  },
)

/** The user "nobody" on Linux and macOS: containers often run tests as root, which ignores permissions. */
const NOBODY = 65534

const script = () => join(checkout.source, "scripts/install")
const run = (...args: string[]) => runScript(["sh", script(), ...args], { cwd: checkout.root })

test.each([
  ["no folder", [], "which project?"],
  ["an unknown option", ["project", "--force"], "Unknown option '--force'"],
  ["two folders", ["project", "checkout"], "received two: 'project' and 'checkout'"],
  ["an empty folder name", [""], "received an empty name"],
  ["--purge without --uninstall", ["project", "--purge"], "--purge goes with --uninstall"],
  ["a missing folder", ["absent"], "no such folder: 'absent'"],
  ["a file", ["checkout/package.json"], "not a folder: 'checkout/package.json'"],
  ["the checkout itself", ["checkout"], "'checkout' is the checkout of Baton itself"],
  ["an .opencode folder", ["checkout/.opencode"], "name the project that holds it"],
])(
  promised("install.E1", "the installer refuses %s with exit code 2 and says what it received"),
  (_, args, message) => {
    const { exitCode, stdout, stderr } = run(...args)
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" })
    expect(stderr).toContain(message)
    expect(stderr).toContain("--help")
    expect(readdirSync(checkout.project)).toEqual([])
  },
)

test.each<[string, Record<string, string>?]>([
  [".opencode"],
  [".opencode/plugins"],
  [".opencode/baton/host"],
  ["prompts"],
  [".opencode/prompts", { "prompts/mail.md": "Dear {{customer}},\n" }],
])(
  promised(["install.E1", "install.E7"], "the installer does not write through a link for %s"),
  (folder, files = {}) => {
    writeFiles(checkout.project, files)
    mkdirSync(join(checkout.root, "elsewhere"))
    checkout.link(join(checkout.root, "elsewhere"), folder)
    const before = snapshotTree(checkout.project)
    const { exitCode, stderr } = checkout.install()
    expect(exitCode).toBe(1)
    expect(stderr).toContain(`${checkout.project}/${folder} is a symbolic link to ${checkout.root}/elsewhere`)
    expect(readdirSync(join(checkout.root, "elsewhere"))).toEqual([])
    expect(snapshotTree(checkout.project)).toEqual(before)
  },
)

test(
  promised(
    "install.E1",
    "the installer says that a file is in the place of a folder, and that a checkout is incomplete",
  ),
  () => {
    checkout.write(".opencode/baton", "a file\n")
    const { exitCode, stderr } = checkout.install()
    expect(exitCode).toBe(1)
    expect(stderr).toContain(`${checkout.project}/.opencode/baton is not a folder. Nothing was changed`)
    expect(Object.keys(snapshotTree(checkout.project))).toEqual([".opencode", ".opencode/baton"])
    runScript(["rm", "-r", join(checkout.source, ".opencode/baton"), join(checkout.source, "prompts")])
    expect(checkout.install()).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("no .opencode/baton in") })
  },
)

test(promised("install.E1", "the installer says that a project is read-only, and changes nothing"), () => {
  const root = process.getuid?.() === 0
  if (root) chownSync(checkout.project, NOBODY, NOBODY)
  chmodSync(checkout.project, 0o555)
  const options = { cwd: checkout.root, ...(root ? { uid: NOBODY } : {}) }
  const outcome = runScript(["sh", script(), checkout.project], options)
  chmodSync(checkout.project, 0o755)
  expect(outcome.exitCode).toBe(1)
  expect(outcome.stderr).toContain("Nothing was changed. Make it writable")
  expect(readdirSync(checkout.project)).toEqual([])
})
