import { execFileSync } from "node:child_process"
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { describe, expect, onTestFinished, test, vi } from "vitest"
import type { Changes } from "../../../.opencode/baton/pass-over/sandbox/types.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import {
  createPassProject,
  gitIn,
  isExecutable,
  projectTree,
  readIn,
  removeIn,
  succeed,
  writeFiles,
} from "../../support/opencode/pass-project.ts"

const summary = ({ modifications }: Changes): Record<string, string> =>
  Object.fromEntries(modifications.map(({ path, change }) => [path, change]))

/** A project with a pass that has entered its copy. */
const beginPass = async (options: Parameters<typeof createPassProject>[0] = {}) => {
  const project = createPassProject(options)
  return { ...project, ...(await project.begin("p1")) }
}

describe("the copy of a pass", () => {
  test(
    promised("pass-over.B2", "has what is on the disk now, uncommitted and untracked files too, and no ignored ones"),
    async () => {
      const { root, begin } = createPassProject()
      writeFiles(root, { "a.txt": "changed, not committed\n", "staged.txt": "s\n", "new.txt": "n\n", "ignored/x": "x" })
      gitIn(root, "add", "staged.txt")
      removeIn(root, "src/b.txt")
      symlinkSync("a.txt", join(root, "link"))
      const before = projectTree(root)
      const { copy, directory } = await begin("p1")
      expect(directory).toBe(copy)
      const paths = Object.keys(projectTree(copy)).filter((path) => !/^\.git(?:\/|$)/.test(path))
      expect(paths).toEqual([".gitignore", "a.txt", "link", "new.txt", "staged.txt", "tool.sh"])
      expect(readIn(copy, "a.txt")).toBe("changed, not committed\n")
      expect(readlinkSync(join(copy, "link"))).toBe("a.txt")
      expect(isExecutable(join(copy, "tool.sh"))).toBe(true)
      const status = gitIn(root, "status", "--porcelain").replace("?? .opencode/\n", "")
      expect(gitIn(copy, "status", "--porcelain")).toBe(status)
      expect(gitIn(copy, "log", "--format=%s", "main")).toBe("start\n")
      expect(projectTree(root)).toEqual(before)
    },
  )

  test(promised("pass-over.B2", "is a repository of its own: commit, stash, reset and branch stay in it"), async () => {
    const { root, begin } = createPassProject()
    writeFiles(root, { "a.txt": "dirty\n" })
    const before = projectTree(root)
    const { copy } = await begin("p1")
    gitIn(copy, "stash")
    gitIn(copy, "checkout", "-q", "-b", "other")
    writeFiles(copy, { "c.txt": "c" })
    gitIn(copy, "add", "-A")
    gitIn(copy, "commit", "-q", "-m", "in the copy")
    gitIn(copy, "branch", "-D", "main")
    gitIn(copy, "gc", "-q", "--prune=now")
    expect(gitIn(copy, "remote")).toBe("")
    expect(projectTree(root)).toEqual(before)
  })

  test("works in the same folder of the copy when OpenCode works in a folder of a repository", async () => {
    const { root, connect } = createPassProject()
    const passes = connect(join(root, "src"))
    const begun = succeed(await passes.begin("p1", { canModify: true }))
    expect(await passes.ready("p1")).toBeUndefined()
    expect(begun.directory).toBe(join(begun.copy ?? "", "src"))
    writeFiles(begun.copy ?? "", { "src/b.txt": "x", "a.txt": "y" })
    expect(summary(succeed(await passes.withhold("p1")))).toEqual({ "a.txt": "modified", "src/b.txt": "modified" })
  })

  test("names what it cannot carry", async () => {
    const { root, begin } = createPassProject()
    const nested = join(root, "nested")
    mkdirSync(nested)
    gitIn(nested, "init", "-q")
    writeFiles(nested, { f: "x" })
    const other = createPassProject()
    gitIn(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", other.root, "module")
    execFileSync("mkfifo", [join(root, "pipe")])
    const { leftOut } = await begin("p1")
    expect(leftOut.map(({ path, reason }) => `${path}: ${reason}`).sort()).toEqual([
      "module: it is a submodule",
      "nested/: it is a git repository of its own",
    ])
  })
})

describe("what a pass changed", () => {
  test(
    promised("pass-over.B1", "covers added, modified, deleted, renamed, mode, binary and large files and links"),
    async () => {
      const { root, begin, passes } = createPassProject({
        files: {
          "a.txt": "one\n",
          "gone.txt": "g\n",
          "old/name.txt": "the same\n",
          "run.sh": "#!/bin/sh\n",
          bin: Buffer.from([0, 1, 2]),
        },
      })
      symlinkSync("a.txt", join(root, "link"))
      const { copy } = await begin("p1")
      writeFiles(copy, {
        "a.txt": "two\n",
        "added/deep.txt": "new\n",
        bin: Buffer.from([0, 1, 3]),
        big: "x".repeat(300_000),
      })
      removeIn(copy, "gone.txt")
      mkdirSync(join(copy, "new"))
      renameSync(join(copy, "old/name.txt"), join(copy, "new/name.txt"))
      chmodSync(join(copy, "run.sh"), 0o755)
      removeIn(copy, "link")
      symlinkSync("bin", join(copy, "link"))
      const { modifications } = succeed(await passes.withhold("p1", new Set(["a.txt"])))
      const found = Object.fromEntries(modifications.map((each) => [each.path, each]))
      expect(Object.fromEntries(modifications.map(({ path, change, by }) => [path, `${change} by ${by}`]))).toEqual({
        "a.txt": "modified by tool",
        "added/deep.txt": "added by shell",
        big: "added by shell",
        bin: "modified by shell",
        "gone.txt": "deleted by shell",
        link: "modified by shell",
        "new/name.txt": "renamed by shell",
        "run.sh": "mode_changed by shell",
      })
      expect(found["a.txt"]).toMatchObject({ old_content: "one\n", new_content: "two\n", is_binary: false })
      expect(found["gone.txt"]).toMatchObject({ old_content: "g\n", new_content: null, new_mode: null })
      expect(found["new/name.txt"]).toMatchObject({ previous_path: "old/name.txt", old_content: "the same\n" })
      expect(found["run.sh"]).toMatchObject({ old_mode: "100644", new_mode: "100755" })
      expect(found.bin).toMatchObject({ is_binary: true, old_content: null, new_content: null })
      expect(found.big).toMatchObject({ is_large: true, new_content: null })
      expect(found.link).toMatchObject({ old_content: "a.txt", new_content: "bin", new_mode: "120000" })
      expect(existsSync(copy)).toBe(false)
    },
  )

  test(promised("pass-over.B1", "holds what the child began with though the user changed the same file"), async () => {
    const { root, begin, passes } = createPassProject()
    writeFiles(root, { "dirty.txt": "uncommitted\n" })
    const { copy } = await begin("p1")
    writeFiles(copy, { "a.txt": "child\n", "dirty.txt": "child\n" })
    writeFiles(root, { "a.txt": "user\n", "dirty.txt": "user\n" })
    gitIn(root, "add", "-A")
    gitIn(root, "commit", "-q", "-m", "later")
    const { modifications } = succeed(await passes.changes("p1"))
    expect(modifications.map(({ old_content }) => old_content)).toEqual(["one\ntwo\nthree\n", "uncommitted\n"])
  })

  test("sees a change of the same length in the same moment, and none where only times changed", async () => {
    const { root, begin, passes } = createPassProject()
    writeFiles(root, { "fresh.txt": "aaaa" })
    const { copy } = await begin("p1")
    const { atime, mtime } = statSync(join(copy, "fresh.txt"))
    writeFiles(copy, { "fresh.txt": "bbbb" })
    utimesSync(join(copy, "fresh.txt"), atime, mtime)
    utimesSync(join(copy, "a.txt"), new Date(), new Date())
    expect(summary(succeed(await passes.changes("p1")))).toEqual({ "fresh.txt": "modified" })
  })

  test("keeps to files that git does not ignore, as they were at the beginning or came later", async () => {
    const { passes, copy } = await beginPass()
    writeFiles(copy, {
      "ignored/built": "x",
      ".opencode/state/log": "x",
      "sub/.GIT/hooks/post": "x",
      ".gitignore": "*\n",
    })
    writeFiles(copy, { "new.txt": "ignored by the child's own rule", "a.txt": "still seen" })
    expect(summary(succeed(await passes.withhold("p1")))).toEqual({ ".gitignore": "modified", "a.txt": "modified" })
  })

  test("has line ends as they are on the disk, whatever git makes of them", async () => {
    const { root, begin, passes } = createPassProject({
      files: { ".gitattributes": "* text=auto eol=crlf\n", "w.txt": "one\n" },
    })
    removeIn(root, "w.txt")
    gitIn(root, "checkout", "w.txt")
    expect(readIn(root, "w.txt")).toBe("one\r\n")
    utimesSync(join(root, "w.txt"), new Date(1e12), new Date(1e12))
    gitIn(root, "update-index", "--refresh")
    const { copy } = await begin("p1")
    writeFiles(copy, { "w.txt": "one\r\ntwo\r\n" })
    writeFiles(root, { "w.txt": "zero\r\none\r\n" })
    const { modifications } = succeed(await passes.withhold("p1"))
    expect(modifications[0]?.old_content).toBe("one\r\n")
    expect(modifications.map(({ path, change }) => [path, change])).toEqual([["w.txt", "modified"]])
  })

  test("works in a child that tampered with its own repository", async () => {
    const { passes, copy } = await beginPass()
    removeIn(copy, ".git")
    writeFiles(copy, { "a.txt": "x" })
    expect(summary(succeed(await passes.withhold("p1")))).toEqual({ "a.txt": "modified" })
  })
})

describe("what is held", () => {
  test(promised("pass-over.B2", "leaves the worktree and git as they were until it is applied"), async () => {
    const { root, begin, passes } = createPassProject()
    writeFiles(root, { "mine.txt": "untracked" })
    const before = projectTree(root)
    const { copy } = await begin("p1")
    const changed = { "a.txt": "child\n", "mine.txt": "child", "added.txt": "x" }
    writeFiles(copy, changed)
    expect(projectTree(root)).toEqual(before)
    succeed(await passes.withhold("p1"))
    expect(projectTree(root)).toEqual(before)
    expect(succeed(await passes.apply("p1"))).toMatchObject({ complete: true, held: 0 })
    for (const [path, content] of Object.entries(changed)) expect(readIn(root, path)).toBe(content)
    expect(gitIn(root, "status", "--porcelain", "a.txt", "added.txt")).toBe(" M a.txt\n?? added.txt\n")
  })

  test(
    promised("pass-over.B2", "refuses all of it when one file changed meanwhile, and says what would merge"),
    async () => {
      const { root, passes, copy } = await beginPass()
      writeFiles(copy, { "a.txt": "one\ntwo\nTHREE\n", "src/b.txt": "child\n", "new.txt": "n" })
      succeed(await passes.withhold("p1"))
      writeFiles(root, { "a.txt": "ONE\ntwo\nthree\n", "src/b.txt": "user\n" })
      const before = projectTree(root)
      const refused = succeed(await passes.apply("p1"))
      expect(refused).toMatchObject({ complete: false, held: 3 })
      expect(refused.files.map(({ path, outcome, mergeable }) => [path, outcome, mergeable])).toEqual([
        ["a.txt", "conflict", true],
        ["new.txt", "not-tried", undefined],
        ["src/b.txt", "conflict", false],
      ])
      expect(refused.files[0]?.reason).toContain("a.txt changed meanwhile")
      expect(succeed(await passes.apply("p1", { merge: true })).complete).toBe(false)
      expect(projectTree(root)).toEqual(before)

      const partly = succeed(await passes.apply("p1", { merge: true, allOrNothing: false }))
      expect(partly.files.map(({ outcome }) => outcome)).toEqual(["merged", "applied", "conflict"])
      expect(partly.held).toBe(1)
      expect([readIn(root, "a.txt"), readIn(root, "src/b.txt")]).toEqual(["ONE\ntwo\nTHREE\n", "user\n"])
    },
  )

  test(promised("pass-over.B2", "is applied file by file where that is asked for, and knows what it did"), async () => {
    const { root, passes, copy } = await beginPass()
    writeFiles(copy, { "a.txt": "A", "src/b.txt": "B" })
    succeed(await passes.withhold("p1"))
    expect(succeed(await passes.apply("p1", { paths: ["src/b.txt"] }))).toMatchObject({ complete: true, held: 1 })
    expect(readIn(root, "a.txt")).toBe("one\ntwo\nthree\n")
    expect(succeed(await passes.apply("p1", { paths: ["src/b.txt"] })).files).toEqual([
      { path: "src/b.txt", outcome: "already-applied" },
    ])
    const { files } = succeed(await passes.apply("p1", { paths: ["a.txt", "no.txt"] }))
    expect(files.map(({ outcome }) => outcome)).toEqual(["not-tried", "conflict"])
    expect(await passes.reject("p1")).toEqual({ kind: "rejected", paths: ["a.txt"], applied: [], held: 0 })
    expect(succeed(await passes.apply("p1", { paths: ["a.txt"] })).files[0]?.reason).toContain("rejected")
    expect(succeed(await passes.changes("p1")).modifications).toHaveLength(2)
    expect(await passes.pending()).toEqual([])
  })

  test("puts files in place of folders and folders in place of files, and removes what became empty", async () => {
    const { root, passes, copy } = await beginPass({ files: { "d/x": "x", file: "f", "deep/er/y": "y", k: "k" } })
    removeIn(copy, "d")
    writeFiles(copy, { d: "now a file" })
    removeIn(copy, "file")
    writeFiles(copy, { "file/inner": "now a folder" })
    removeIn(copy, "deep")
    succeed(await passes.withhold("p1"))
    expect(succeed(await passes.apply("p1")).complete).toBe(true)
    expect([readIn(root, "d"), readIn(root, "file/inner")]).toEqual(["now a file", "now a folder"])
    expect(existsSync(join(root, "deep"))).toBe(false)
  })

  test(
    promised("pass-over.B2", "never writes through a link, over a folder, or over what somebody else made"),
    async () => {
      const { root, begin, passes } = createPassProject()
      const outside = temporaryFolder()
      const { copy } = await begin("p1")
      writeFiles(copy, { "src/new.txt": "child", "made.txt": "child", folder: "child" })
      succeed(await passes.withhold("p1"))
      removeIn(root, "src")
      symlinkSync(outside, join(root, "src"))
      writeFiles(root, { "made.txt": "user", "folder/x": "user" })
      const result = succeed(await passes.apply("p1", { merge: true, allOrNothing: false }))
      expect(result.files.map(({ outcome }) => outcome)).toEqual(["conflict", "conflict", "conflict"])
      expect(existsSync(join(outside, "new.txt"))).toBe(false)
      expect([readIn(root, "made.txt"), readIn(root, "folder/x")]).toEqual(["user", "user"])
    },
  )

  test("keeps the permissions of files it writes, and gives new ones those of the process", async () => {
    const { root, begin, passes } = createPassProject()
    chmodSync(join(root, "a.txt"), 0o600)
    const { copy } = await begin("p1")
    writeFiles(copy, { "a.txt": "x", "new.sh": "y" })
    chmodSync(join(copy, "new.sh"), 0o700)
    succeed(await passes.keep("p1"))
    expect(lstatSync(join(root, "a.txt")).mode & 0o777).toBe(0o600)
    expect(lstatSync(join(root, "new.sh")).mode & 0o777).toBe(0o777 & ~process.umask())
  })

  test(promised("pass-over.B2", "stays in the worktree with auto_apply, apart from what conflicts"), async () => {
    const { root, passes, copy } = await beginPass()
    writeFiles(copy, { "a.txt": "one\ntwo\nTHREE\n", "src/b.txt": "child\n" })
    writeFiles(root, { "a.txt": "ONE\ntwo\nthree\n", "src/b.txt": "user\n" })
    const kept = succeed(await passes.keep("p1"))
    expect(kept.files.map(({ path, outcome }) => [path, outcome])).toEqual([
      ["a.txt", "merged"],
      ["src/b.txt", "conflict"],
    ])
    expect([readIn(root, "a.txt"), kept.held]).toEqual(["ONE\ntwo\nTHREE\n", 1])
  })
})

describe("several passes", () => {
  test(
    promised("pass-over.B3", "at the same time see nothing of each other, and merge where they are applied"),
    async () => {
      const { root, begin, passes } = createPassProject()
      const [one, two] = await Promise.all([begin("p1"), begin("p2")])
      writeFiles(one.copy, { "a.txt": "ONE\ntwo\nthree\n", "one.txt": "1" })
      writeFiles(two.copy, { "a.txt": "one\ntwo\nTHREE\n", "two.txt": "2" })
      const [first, second] = await Promise.all([passes.withhold("p1"), passes.withhold("p2")])
      expect(summary(succeed(first))).toEqual({ "a.txt": "modified", "one.txt": "added" })
      expect(summary(succeed(second))).toEqual({ "a.txt": "modified", "two.txt": "added" })
      const results = await Promise.all([passes.apply("p1", { merge: true }), passes.apply("p2", { merge: true })])
      expect(results.map((result) => succeed(result).complete)).toEqual([true, true])
      expect(readIn(root, "a.txt")).toBe("ONE\ntwo\nTHREE\n")
    },
  )

  test(
    promised("pass-over.B3", "in a chain work on each other's copies, and the last one's apply stays in between"),
    async () => {
      const { root, begin, passes } = createPassProject()
      const before = projectTree(root)
      const outer = await begin("outer")
      writeFiles(outer.copy, { "a.txt": "outer\n" })
      const inner = await begin("inner", { parent: "outer" })
      expect(readIn(inner.copy, "a.txt")).toBe("outer\n")
      const reader = succeed(await passes.begin("reader", { canModify: false, parent: "inner" }))
      expect(reader).toMatchObject({ directory: inner.copy, copy: inner.copy })
      writeFiles(inner.copy, { "src/b.txt": "inner\n" })
      expect(summary(succeed(await passes.withhold("inner")))).toEqual({ "src/b.txt": "modified" })
      expect(succeed(await passes.apply("inner")).complete).toBe(true)
      expect(projectTree(root)).toEqual(before)
      expect(summary(succeed(await passes.withhold("outer")))).toEqual({ "a.txt": "modified", "src/b.txt": "modified" })
      expect(await passes.apply("inner", {})).toMatchObject({ kind: "refused", code: "wrong-state" })
    },
  )
})

test(promised("soak.B4", "a pass that may change nothing is not remembered after its end"), async () => {
  const { passes } = createPassProject()
  succeed(await passes.begin("reader", { canModify: false }))
  expect(succeed(await passes.changes("reader")).modifications).toEqual([])
  expect(succeed(await passes.withhold("reader")).modifications).toEqual([])
  expect(await passes.changes("reader")).toMatchObject({ kind: "refused", code: "unknown-pass" })
})

describe("what is refused", () => {
  test(promised("pass-over.B2", "says so without git, and for folders that are no project"), async () => {
    const { connect } = createPassProject()
    onTestFinished(() => void vi.unstubAllEnvs())
    vi.stubEnv("PATH", "/nowhere")
    expect(await connect().begin("p1", { canModify: true })).toMatchObject({ kind: "refused", code: "no-git" })
    expect(await connect().begin("p2", { canModify: false })).toMatchObject({ kind: "begun", copy: undefined })
    vi.unstubAllEnvs()
    const { root, passes } = createPassProject({ git: false })
    vi.stubEnv("HOME", root)
    expect(await passes.begin("p1", { canModify: true })).toMatchObject({ kind: "refused", code: "no-repository" })
  })

  test(promised("pass-over.B2", "is not a folder outside git: it is copied by its own .gitignore"), async () => {
    const { root, begin, passes } = createPassProject({ git: false })
    writeFiles(root, { "ignored/x": "x" })
    const { copy } = await begin("p1")
    expect(existsSync(join(copy, "ignored"))).toBe(false)
    writeFiles(copy, { "a.txt": "child\n" })
    removeIn(copy, "src")
    expect(succeed(await passes.keep("p1")).complete).toBe(true)
    expect([readIn(root, "a.txt"), existsSync(join(root, "src"))]).toEqual(["child\n", false])
  })

  test(
    promised("pass-over.B3", "is listed as damaged when its files cannot be read, and the others still are"),
    async () => {
      const { root, begin, passes, connect } = createPassProject()
      await begin("p1")
      await begin("p2")
      succeed(await passes.withhold("p2"))
      writeFiles(root, { ".opencode/state/pass-over/p2/files/changes.json": '{"version":1,' })
      const [damaged, working] = await connect().pending()
      expect(damaged).toMatchObject({ passID: "p2", state: "damaged", isOwned: false })
      expect(damaged?.reason).toContain("SyntaxError")
      expect(working).toMatchObject({ passID: "p1", state: "working", isOwned: true })
      expect(await passes.apply("p2")).toMatchObject({ kind: "refused", code: "failed" })
    },
  )

  test(promised("pass-over.B2", "is a copy that cannot be made, of which nothing stays"), async () => {
    const { root, passes, begin } = createPassProject()
    writeFiles(root, { ".git/index": "no index" })
    expect(await passes.begin("p1", { canModify: true })).toMatchObject({ kind: "refused", code: "failed" })
    expect(await passes.pending()).toEqual([])
    removeIn(root, ".git/index")
    gitIn(root, "reset", "-q")
    expect((await begin("p1")).leftOut).toEqual([])
  })

  test("is an unknown pass, one that still works, an id twice, and an id that leads out of the folder", async () => {
    const { passes, connect, copy } = await beginPass()
    for (const id of ["nobody", "../../x", ""]) {
      expect(await passes.apply(id)).toMatchObject({ kind: "refused", code: "unknown-pass" })
    }
    expect(await passes.begin("../x", { canModify: true })).toMatchObject({ code: "unknown-pass" })
    expect(await passes.begin("p2", { canModify: true, parent: "nobody" })).toMatchObject({ code: "unknown-pass" })
    expect(await passes.begin("p1", { canModify: true })).toMatchObject({ code: "wrong-state" })
    expect(await passes.apply("p1")).toMatchObject({ code: "wrong-state" })
    expect(await passes.reject("p1")).toMatchObject({ code: "wrong-state" })
    expect(await connect().withhold("p1")).toMatchObject({ code: "busy" })
    expect(readFileSync(join(realpathSync(copy), "a.txt"), "utf8")).toContain("one")
    writeFileSync(join(copy, "a.txt"), "x")
    expect(succeed(await passes.withhold("p1")).modifications).toHaveLength(1)
  })
})
