import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { describe, expect, onTestFinished, test, vi } from "vitest"
import { promised } from "../../requirements.ts"
import { snapshotTree } from "../../support/files/folder-tree.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import {
  connectSandboxes,
  createPassProject,
  createRepository,
  gitIn,
  modeOf,
  passPlace,
  projectTree,
  readIn,
  removeIn,
  storedText,
  succeed,
  writeFiles,
} from "../../support/opencode/pass-project.ts"

/** A pass whose child changed two files and added one, stored. */
const holdChanges = async () => {
  const project = createPassProject()
  await project.store("p1", { "a.txt": "one\ntwo\nTHREE\n", "src/b.txt": "child\n", "new.txt": "n\n" })
  return project
}

/** Files of the pass's store that hold contents. */
const storedContents = (root: string): string[] => {
  const objects = passPlace(root, "p1", "files", "store", "objects")
  const names = readdirSync(objects, { recursive: true, encoding: "utf8" })
  return names.map((name) => join(objects, name)).filter((path) => lstatSync(path).isFile() && !path.endsWith(".idx"))
}

describe("contents that are damaged", () => {
  test.each<[string, (bytes: Uint8Array) => Uint8Array]>([
    ["empty", () => new Uint8Array()],
    ["cut off", (bytes) => bytes.subarray(0, bytes.length / 2)],
    ["changed", (bytes) => bytes.map((byte, at) => (at === bytes.length - 30 ? byte ^ 0xff : byte))],
  ])(promised("pass-over.B5", "damaged contents are refused and nothing is written, %s ones"), async (_, damage) => {
    const { root, connect } = await holdChanges()
    const before = projectTree(root)
    for (const path of storedContents(root)) {
      chmodSync(path, 0o644)
      writeFileSync(path, damage(readFileSync(path)))
    }
    const refused = await connect().apply("p1")
    expect(refused).toMatchObject({ kind: "refused", code: "damaged", reason: expect.stringContaining("damaged") })
    expect(projectTree(root)).toEqual(before)
    expect(await connect().reject("p1")).toMatchObject({ kind: "rejected", held: 0 })
  })

  test(
    promised("pass-over.B5", "contents that are damaged are refused also where another object stands under their name"),
    async () => {
      const { root, connect } = await holdChanges()
      const store = passPlace(root, "p1", "files", "store")
      const git = (...args: string[]) => gitIn(root, `--git-dir=${store}`, ...args)
      const list = JSON.parse(readIn(passPlace(root, "p1"), "files/changes.json"))
      const oids = list.files.flatMap(({ base, next }: Record<string, { oid: string } | null>) =>
        [base, next].flatMap((side) => side?.oid ?? []),
      )
      const pack = readdirSync(join(store, "objects/pack")).find((name) => name.endsWith(".pack")) ?? ""
      renameSync(join(store, "objects/pack", pack), join(root, ".opencode/state/away.pack"))
      const other = git("hash-object", "-w", ".gitignore").trim()
      for (const oid of oids) {
        const pathOf = (id: string) => join(store, "objects", id.slice(0, 2), id.slice(2))
        cpSync(pathOf(other), pathOf(oid))
      }
      const before = projectTree(root)
      expect(await connect().apply("p1")).toMatchObject({ kind: "refused", code: "damaged" })
      expect(projectTree(root)).toEqual(before)
    },
  )
})

describe("what a repository brings along", () => {
  test(
    promised(
      "pass-over.B4",
      "what a repository brings along is not run: monitor, hooks, filters, conversions, external differences",
    ),
    async () => {
      const { root, begin, passes } = createPassProject()
      const proof = join(temporaryFolder(), "ran")
      const program = `sh -c 'echo ran >> ${proof}; cat'`
      const drivers = ["filter.f.clean", "filter.f.smudge", "diff.d.textconv", "diff.d.command", "merge.m.driver"]
      for (const setting of ["core.fsmonitor", "diff.external", ...drivers]) gitIn(root, "config", setting, program)
      writeFiles(root, { ".git/info/attributes": "* filter=f diff=d merge=m ident\n" })
      const hooks = ["post-index-change", "post-checkout", "reference-transaction", "pre-auto-gc"]
      for (const hook of hooks) {
        writeFiles(root, { [`.git/hooks/${hook}`]: `#!/bin/sh\necho ran >> ${proof}\n` })
        chmodSync(join(root, `.git/hooks/${hook}`), 0o755)
      }
      writeFiles(root, { "a.txt": "one\nTWO\nthree\n", "new.txt": "$Id$\n" })
      await begin("p1", { writes: { "a.txt": "one\nTWO\nthree\nfour\n", "src/b.txt": "x\n" } })
      writeFiles(root, { "src/b.txt": "user\n" })
      expect(succeed(await passes.autoApply("p1")).files.map(({ outcome }) => outcome)).toEqual(["applied", "conflict"])
      expect(readIn(root, "a.txt")).toBe("one\nTWO\nthree\nfour\n")
      expect(readIn(root, "new.txt")).toBe("$Id$\n")
      expect(existsSync(proof)).toBe(false)
    },
  )

  test(
    promised(
      "pass-over.B4",
      "what a repository brings along does not change bytes, whatever attributes and settings say",
    ),
    async () => {
      const files = {
        ".gitattributes": "*.crlf eol=crlf\n*.id ident\n*.utf16 working-tree-encoding=UTF-16\n*.lf text\n",
        "mixed.crlf": "a\r\nb\nc\r",
        "x.id": "$Id: old $\n",
        "x.utf16": "not UTF-16 at all",
        "x.lf": "a\r\nb\n",
        auto: "a\r\nb\r\n",
      }
      const { root, begin, passes } = createPassProject({ files, git: false })
      gitIn(root, "init", "-q")
      gitIn(root, "config", "core.autocrlf", "true")
      const before = snapshotTree(root)
      const { sandbox } = await begin("p1")
      for (const [path, text] of Object.entries(files)) expect(readIn(sandbox, path), path).toBe(text)
      for (const [path, text] of Object.entries(files)) writeFiles(sandbox, { [path]: `${text}more\r\n` })
      const { modifications } = succeed(await passes.collect("p1"))
      const began = modifications.map(({ old_hash }) => storedText(root, "p1", old_hash))
      expect(new Set(began)).toEqual(new Set(Object.values(files)))
      succeed(await passes.autoApply("p1"))
      for (const [path, text] of Object.entries(files)) expect(readIn(root, path), path).toBe(`${text}more\r\n`)
      const git = (tree: Record<string, string>) => Object.entries(tree).filter(([path]) => path.startsWith(".git/"))
      expect(git(snapshotTree(root))).toEqual(git(before))
    },
  )
})

describe("the files of a sandbox", () => {
  test(
    promised("pass-over.B2", "the files of a sandbox are tracked ones though they are ignored, with their permissions"),
    async () => {
      const files = { "secret.key": "k\n", "kept/x": "x\n", "own/deep/x": "x\n" }
      const { root, begin, passes } = createPassProject({ files })
      writeFiles(root, { ".gitignore": "kept/\n" })
      chmodSync(join(root, "secret.key"), 0o600)
      chmodSync(join(root, "own"), 0o700)
      chmodSync(join(root, "own/deep"), 0o550)
      const { sandbox } = await begin("p1")
      const modes = ["secret.key", "own", "own/deep"].map((path) => modeOf(join(sandbox, path)))
      expect(modes).toEqual([0o600, 0o700, 0o750])
      expect(readIn(sandbox, "kept/x")).toBe("x\n")
      writeFiles(sandbox, { "kept/x": "y\n", "secret.key": "K\n" })
      expect(succeed(await passes.autoApply("p1")).complete).toBe(true)
      expect(readIn(root, "kept/x")).toBe("y\n")
      expect(modeOf(join(root, "secret.key"))).toBe(0o600)
    },
  )

  test(
    promised("pass-over.B2", "the files of a sandbox are without Baton's state in any spelling, there and back"),
    async () => {
      const files = { ".OpenCode/State/live/a.json": "{}", "a.txt": "a\n" }
      const { root, begin, passes } = createPassProject({ files })
      const { sandbox } = await begin("p1")
      expect(existsSync(join(sandbox, ".OpenCode"))).toBe(false)
      writeFiles(sandbox, { ".OPENCODE/state/x": "x", "git~1/hooks/x": "x", ".g\u200Cit/x": "x", "a.txt": "b\n" })
      expect(succeed(await passes.autoApply("p1")).complete).toBe(true)
      expect([".OPENCODE", "git~1", ".g\u200Cit"].filter((name) => existsSync(join(root, name)))).toEqual([])
      expect(readIn(root, "a.txt")).toBe("b\n")
    },
  )

  test(promised("pass-over.B4", "a sandbox has the history of a linked worktree of a shallow clone"), async () => {
    const { root, begin } = createPassProject()
    for (const text of ["2\n", "3\n"]) {
      writeFiles(root, { "a.txt": text })
      gitIn(root, "commit", "-qam", text)
    }
    const [clone, linked] = [join(temporaryFolder(), "clone"), join(temporaryFolder(), "linked")]
    gitIn(root, "clone", "-q", "--depth", "2", `file://${root}`, clone)
    gitIn(clone, "worktree", "add", "-q", "-b", "other", linked)
    const { sandbox } = await begin("p1", { passes: connectSandboxes(linked) })
    expect(gitIn(sandbox, "log", "--oneline").trim().split("\n")).toHaveLength(2)
  })

  test(
    promised("pass-over.B2", "the files of a sandbox are copied where the home is missing and there is no repository"),
    async () => {
      onTestFinished(() => void vi.unstubAllEnvs())
      const { begin } = createPassProject({ git: false })
      vi.stubEnv("HOME", join(temporaryFolder(), "none"))
      const { sandbox } = await begin("p1")
      expect(readIn(sandbox, "src/b.txt")).toBe("bee\n")
    },
  )

  test(promised("pass-over.B2", "sandbox files are without those that the user ignores everywhere"), async () => {
    onTestFinished(() => void vi.unstubAllEnvs())
    const { root, begin } = createPassProject()
    const home = temporaryFolder()
    writeFiles(home, { ".gitconfig": "[core]\n\texcludesFile = ~/ignored-by-me\n", "ignored-by-me": "*.mine\n" })
    vi.stubEnv("HOME", home)
    vi.stubEnv("GIT_CONFIG_GLOBAL", undefined)
    writeFiles(root, { "x.mine": "x", "x.ours": "x" })
    const { sandbox } = await begin("p1")
    expect([existsSync(join(sandbox, "x.mine")), existsSync(join(sandbox, "x.ours"))]).toEqual([false, true])
  })

  test(
    promised(
      "pass-over.B1",
      "the files of a sandbox change between file, folder and link, and the project's with them",
    ),
    async () => {
      const files = { "d/x": "x", "e/x": "x", "empty/er/x": "x", file: "f" }
      const { root, begin, passes } = createPassProject({ files })
      const { sandbox } = await begin("p1")
      for (const path of ["d", "e", "empty", "file"]) removeIn(sandbox, path)
      symlinkSync("file", join(sandbox, "d"))
      writeFiles(sandbox, { e: "now a file", "file/inner": "i" })
      const { modifications } = succeed(await passes.collect("p1"))
      expect(modifications.map(({ path, change, new_mode }) => [path, change, new_mode])).toEqual([
        ["d", "added", "120000"],
        ["d/x", "deleted", null],
        ["e", "added", "100644"],
        ["e/x", "deleted", null],
        ["empty/er/x", "deleted", null],
        ["file", "deleted", null],
        ["file/inner", "added", "100644"],
      ])
      expect(succeed(await passes.apply("p1")).complete).toBe(true)
      expect([readIn(root, "e"), readIn(root, "file/inner")]).toEqual(["now a file", "i"])
      expect([lstatSync(join(root, "d")).isSymbolicLink(), existsSync(join(root, "empty"))]).toEqual([true, false])
    },
  )

  test(
    promised("pass-over.B2", "held changes go where their project went: moved, it is the one that is written to"),
    async () => {
      const { root } = await holdChanges()
      const [copied, moved] = [`${root}-copied`, `${root}-moved`]
      cpSync(root, copied, { recursive: true })
      expect(succeed(await connectSandboxes(copied).apply("p1")).complete).toBe(true)
      expect([readIn(copied, "src/b.txt"), readIn(root, "src/b.txt")]).toEqual(["child\n", "bee\n"])
      renameSync(root, moved)
      expect(succeed(await connectSandboxes(moved).apply("p1")).complete).toBe(true)
      expect(readIn(moved, "src/b.txt")).toBe("child\n")
    },
  )
})

/** Leaves what an apply that was cut off would leave. */
const leaveJournal = (root: string, files: readonly string[], entry: Record<string, unknown>): void => {
  const journal = { version: 1, files, entries: [entry], suffix: "0123456789abcdef" }
  writeFiles(passPlace(root, "p1", "files"), { "apply.json": JSON.stringify(journal) })
}

describe("state that others wrote", () => {
  /** Says that the sandbox was made of another folder. */
  const retarget = (root: string, target: string): void => {
    const folder = passPlace(root, "p1", "files")
    writeFiles(folder, { "sandbox.json": JSON.stringify({ ...JSON.parse(readIn(folder, "sandbox.json")), target }) })
  }

  test.each(["../..", ".git"])(
    promised("pass-over.B5", "state that others wrote leads no write out of the project: %s"),
    async (target) => {
      const { root, connect } = await holdChanges()
      retarget(root, target)
      const before = snapshotTree(join(root, ".."))
      expect(await connect().apply("p1")).toMatchObject({ kind: "refused" })
      expect(new Set(Object.keys(snapshotTree(join(root, ".."))))).toEqual(new Set(Object.keys(before)))
    },
  )

  test(promised("trust.A2", "state that others wrote leads no write out of the project by a link"), async () => {
    const { root, connect } = await holdChanges()
    const beside = join(root, "..", "beside")
    mkdirSync(beside)
    symlinkSync("..", join(root, "away"))
    retarget(root, "away/beside")
    expect(await connect().apply("p1")).toMatchObject({ kind: "refused" })
    expect(readdirSync(beside)).toEqual([])
  })

  test.each([
    ["a path outside", { path: "../out.txt", temporary: "../out.txt.baton-pass-0123456789abcdef" }],
    ["the repository", { path: ".git/hooks/x", temporary: ".git/hooks/x.baton-pass-0123456789abcdef" }],
    ["another temporary file", { path: "new.txt", temporary: "a.txt" }],
  ])(promised("pass-over.B5", "a journal that others wrote takes nothing back at %s"), async (_, entry) => {
    const { root, connect } = await holdChanges()
    leaveJournal(root, [], { ...entry, before: null, after: null })
    const before = projectTree(root)
    expect(await connect().collect("p1")).toMatchObject({ kind: "refused" })
    expect(projectTree(root)).toEqual(before)
  })
})

describe("a link that the user made meanwhile", () => {
  test.each([["dir/a.txt"], ["dir/sub/a.txt", "dir/b.txt"]])(
    promised("pass-over.B2", "a link that the user made meanwhile leads no part of a result out of the worktree: %s"),
    async (...paths) => {
      const root = createRepository({ "src/b.txt": "bee\n", "c.txt": "c\n" })
      symlinkSync("src", join(root, "dir"))
      const outside = temporaryFolder()
      mkdirSync(join(outside, "sub"))
      const passes = connectSandboxes(root)
      const { sandbox = "" } = succeed(await passes.create("p1", { canModify: true }))
      expect(await passes.ready("p1")).toBeUndefined()
      removeIn(sandbox, "dir")
      writeFiles(sandbox, Object.fromEntries([...paths, "c.txt"].map((path) => [path, "child\n"])))
      succeed(await passes.collect("p1"))
      removeIn(root, "dir")
      symlinkSync(outside, join(root, "dir"))
      const { files } = succeed(await passes.apply("p1", { allOrNothing: false }))
      expect(files.filter(({ outcome }) => outcome !== "conflict")).toEqual([{ path: "c.txt", outcome: "applied" }])
      expect(files).toHaveLength(paths.length + 2)
      expect(snapshotTree(outside)).toEqual({ sub: expect.any(String) })
    },
  )

  test(
    promised(
      "pass-over.B2",
      "a link that the user made meanwhile leads no file that is taken back out of the worktree",
    ),
    async () => {
      const { root, connect } = await holdChanges()
      const oid = gitIn(root, "hash-object", "src/b.txt").trim()
      const before = { mode: "100644", oid, size: 4, permissions: 0o644 }
      leaveJournal(root, ["src/b.txt"], { path: "src/b.txt", before, after: null })
      const outside = temporaryFolder()
      removeIn(root, "src")
      symlinkSync(outside, join(root, "src"))
      const { leftAlone } = succeed(await connect().collect("p1"))
      expect(leftAlone).toEqual([{ path: "src/b.txt", reason: expect.stringContaining("src, which is a link now") }])
      expect(readdirSync(outside)).toEqual([])
    },
  )
})

test(promised("pass-over.B5", "a journal whose contents are gone names its files, leaves them, and ends"), async () => {
  const { root, connect } = await holdChanges()
  const gone = { mode: "100644", oid: "1".repeat(40), size: 1, permissions: 0o644 }
  const after = { mode: "100644", oid: gitIn(root, "hash-object", "a.txt").trim(), size: 0 }
  leaveJournal(root, ["a.txt"], { path: "a.txt", before: gone, after })
  writeFiles(root, { "a.txt.baton-pass.tmp": "of somebody else" })
  const before = projectTree(root)
  const { leftAlone } = succeed(await connect().collect("p1"))
  expect(leftAlone).toEqual([{ path: "a.txt", reason: "its previous content is damaged" }])
  expect(projectTree(root)).toEqual(before)
  expect(succeed(await connect().reject("p1")).held).toBe(0)
})
