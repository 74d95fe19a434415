import { execFileSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readlinkSync, renameSync, statSync, symlinkSync, utimesSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, onTestFinished, test, vi } from "vitest"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import type { Changes } from "../../../.opencode/baton/pass-over/sandbox/sandbox.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import {
  connectSandboxes,
  createPassProject,
  gitIn,
  isExecutable,
  modeOf,
  passPlace,
  projectTree,
  readIn,
  removeIn,
  storedText,
  succeed,
  writeFiles,
} from "../../support/opencode/pass-project.ts"
import { idOf } from "../../support/opencode/pass-sandboxes.ts"

const summary = ({ modifications }: Changes): Record<string, string> =>
  Object.fromEntries(modifications.map(({ path, change }) => [path, change]))

describe("the sandbox of a pass", () => {
  test(
    promised(
      "pass-over.B2",
      "the sandbox of a pass has the files of the disk, uncommitted and untracked, no ignored ones",
    ),
    async () => {
      const { root, begin } = createPassProject()
      writeFiles(root, { "a.txt": "changed, not committed\n", "staged.txt": "s\n", "new.txt": "n\n", "ignored/x": "x" })
      gitIn(root, "add", "staged.txt")
      removeIn(root, "src/b.txt")
      symlinkSync("a.txt", join(root, "link"))
      const before = projectTree(root)
      const { sandbox, directory } = await begin("p1")
      expect(directory).toBe(sandbox)
      const paths = Object.keys(projectTree(sandbox)).filter((path) => !/^\.git(?:\/|$)/.test(path))
      expect(paths).toEqual([".gitignore", "a.txt", "link", "new.txt", "staged.txt", "tool.sh"])
      expect(readIn(sandbox, "a.txt")).toBe("changed, not committed\n")
      expect(readlinkSync(join(sandbox, "link"))).toBe("a.txt")
      expect(isExecutable(join(sandbox, "tool.sh"))).toBe(true)
      const status = gitIn(root, "status", "--porcelain").replace("?? .opencode/\n", "")
      expect(gitIn(sandbox, "status", "--porcelain")).toBe(status)
      expect(gitIn(sandbox, "log", "--format=%s", "main")).toBe("start\n")
      expect(projectTree(root)).toEqual(before)
    },
  )

  test(
    promised(
      "pass-over.B2",
      "the sandbox of a pass is a repository of its own: commit, stash, reset and branch stay in it",
    ),
    async () => {
      const { root, begin } = createPassProject()
      writeFiles(root, { "a.txt": "dirty\n" })
      const before = projectTree(root)
      const { sandbox } = await begin("p1")
      gitIn(sandbox, "stash")
      gitIn(sandbox, "checkout", "-q", "-b", "other")
      writeFiles(sandbox, { "c.txt": "c" })
      gitIn(sandbox, "add", "-A")
      gitIn(sandbox, "commit", "-q", "-m", "in the copy")
      gitIn(sandbox, "branch", "-D", "main")
      gitIn(sandbox, "gc", "-q", "--prune=now")
      expect(gitIn(sandbox, "remote")).toBe("")
      expect(projectTree(root)).toEqual(before)
    },
  )

  test("a pass works in the same folder of the sandbox when OpenCode works in a folder of a repository", async () => {
    const { root, connect } = createPassProject()
    const passes = connect(join(root, "src"))
    const made = succeed(await passes.create("p1", { canModify: true }))
    expect(await passes.ready("p1")).toBeUndefined()
    expect(made.directory).toBe(join(made.sandbox ?? "", "src"))
    writeFiles(made.sandbox ?? "", { "src/b.txt": "x", "a.txt": "y" })
    expect(summary(succeed(await passes.collect("p1")))).toEqual({ "a.txt": "modified", "src/b.txt": "modified" })
  })

  test("the sandbox of a pass names what it cannot carry", async () => {
    const { root, begin } = createPassProject()
    const nested = join(root, "nested")
    mkdirSync(nested)
    gitIn(nested, "init", "-q")
    writeFiles(nested, { f: "x" })
    const other = createPassProject()
    gitIn(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", other.root, "module")
    execFileSync("mkfifo", [join(root, "pipe")])
    const { skipped } = await begin("p1")
    expect(skipped.map(({ path, reason }) => `${path}: ${reason}`).sort()).toEqual([
      "module: it is a submodule",
      "nested/: it is a git repository of its own",
    ])
  })
})

describe("what a pass changed", () => {
  test(
    promised(["pass-over.B1", "pass-over.E4"], "a pass tells what it changed, of every kind of change and of file"),
    async () => {
      const { root, begin, passes } = createPassProject({
        files: {
          // What the repository calls binary is none for that.
          ".gitattributes": "*.txt -diff\n",
          "a.txt": "one\n",
          "gone.txt": "g\n",
          "old/name.txt": "the same\n",
          "run.sh": "#!/bin/sh\n",
          bin: Buffer.from([0, 1, 2]),
        },
      })
      symlinkSync("a.txt", join(root, "link"))
      const { sandbox } = await begin("p1")
      const bin = Buffer.from([0, 1, 3])
      const big = "x".repeat(300_000)
      writeFiles(sandbox, { "a.txt": "two\n", "added/deep.txt": "new\n", bin, big })
      removeIn(sandbox, "gone.txt")
      mkdirSync(join(sandbox, "new"))
      renameSync(join(sandbox, "old/name.txt"), join(sandbox, "new/name.txt"))
      chmodSync(join(sandbox, "run.sh"), 0o755)
      removeIn(sandbox, "link")
      symlinkSync("bin", join(sandbox, "link"))
      const { modifications } = succeed(await passes.collect("p1", new Set(["a.txt"])))
      const found = Object.fromEntries(modifications.map((each) => [each.path, each]))
      const contents = (path: string) =>
        [found[path]?.old_hash, found[path]?.new_hash].map((hash) => storedText(root, "p1", hash))
      expect(contents("a.txt")).toEqual(["one\n", "two\n"])
      expect(contents("gone.txt")).toEqual(["g\n", null])
      expect(contents("link")).toEqual(["a.txt", "bin"])
      const text = { is_binary: false, is_large: false }
      const expected = {
        "a.txt": { change: "modified", by: "tool", ...text },
        "added/deep.txt": { change: "added", by: "shell" },
        big: { change: "added", by: "shell", is_binary: false, is_large: true },
        bin: { change: "modified", by: "shell", is_binary: true, is_large: false },
        "gone.txt": { change: "deleted", by: "shell", new_mode: null },
        link: { change: "modified", by: "shell", link_target: "bin", new_mode: "120000" },
        "new/name.txt": { change: "renamed", by: "shell", previous_path: "old/name.txt" },
        "run.sh": { change: "mode_changed", by: "shell", old_mode: "100644", new_mode: "100755" },
      }
      expect(found).toMatchObject(expected)
      expect(Object.keys(found)).toEqual(Object.keys(expected))
      // A record of many files stays small.
      expect(modifications.filter(({ old_content, new_content }) => old_content ?? new_content)).toEqual([])
      expect(existsSync(sandbox)).toBe(false)
    },
  )

  test("a change of the same length in the same moment is seen, and none where only times changed", async () => {
    const { root, begin, passes } = createPassProject()
    writeFiles(root, { "fresh.txt": "aaaa" })
    const { sandbox } = await begin("p1")
    const { atime, mtime } = statSync(join(sandbox, "fresh.txt"))
    writeFiles(sandbox, { "fresh.txt": "bbbb" })
    utimesSync(join(sandbox, "fresh.txt"), atime, mtime)
    utimesSync(join(sandbox, "a.txt"), new Date(), new Date())
    expect(summary(succeed(await passes.collect("p1")))).toEqual({ "fresh.txt": "modified" })
  })

  test("a pass's changes keep to files that git does not ignore, as they were at the beginning or came later", async () => {
    const { store } = createPassProject()
    const ignored = { "ignored/built": "x", ".opencode/state/log": "x", "sub/.GIT/hooks/post": "x" }
    const own = { ".gitignore": "*\n", "new.txt": "ignored by the child's own rule" }
    const changes = await store("p1", { ...ignored, ...own, "a.txt": "still seen" })
    expect(summary(changes)).toEqual({ ".gitignore": "modified", "a.txt": "modified" })
  })
})

describe("a held result", () => {
  test(
    promised("pass-over.B2", "a held result leaves the worktree and git as they were until it is applied"),
    async () => {
      const { root, begin, passes } = createPassProject()
      writeFiles(root, { "mine.txt": "untracked" })
      const before = projectTree(root)
      const changed = { "a.txt": "child\n", "mine.txt": "child", "added.txt": "x" }
      await begin("p1", { writes: changed })
      expect(projectTree(root)).toEqual(before)
      succeed(await passes.collect("p1"))
      expect(projectTree(root)).toEqual(before)
      expect(succeed(await passes.apply("p1"))).toMatchObject({ complete: true, held: 0 })
      for (const [path, content] of Object.entries(changed)) expect(readIn(root, path)).toBe(content)
      expect(gitIn(root, "status", "--porcelain", "a.txt", "added.txt")).toBe(" M a.txt\n?? added.txt\n")
    },
  )

  test(
    promised("pass-over.B2", "a result is refused whole when one file changed meanwhile, each conflict by name"),
    async () => {
      const { root, passes, store } = createPassProject()
      await store("p1", { "a.txt": "one\ntwo\nTHREE\n", "src/b.txt": "child\n", "new.txt": "n" })
      writeFiles(root, { "a.txt": "ONE\ntwo\nthree\n", "src/b.txt": "user\n" })
      const before = projectTree(root)
      const refused = succeed(await passes.apply("p1"))
      expect(refused).toMatchObject({ complete: false, held: 3 })
      expect(refused.files.map(({ path, outcome }) => [path, outcome])).toEqual([
        ["a.txt", "conflict"],
        ["new.txt", "not-tried"],
        ["src/b.txt", "conflict"],
      ])
      expect(refused.files[0]?.reason).toContain("a.txt changed meanwhile")
      expect(projectTree(root)).toEqual(before)

      const partly = succeed(await passes.apply("p1", { allOrNothing: false }))
      expect(partly.files.map(({ outcome }) => outcome)).toEqual(["conflict", "applied", "conflict"])
      expect(partly.held).toBe(2)
      expect([readIn(root, "a.txt"), readIn(root, "src/b.txt")]).toEqual(["ONE\ntwo\nthree\n", "user\n"])
    },
  )

  test(
    promised("pass-over.B2", "a held result is applied file by file where that is asked for, and knows what it did"),
    async () => {
      const { root, passes, store } = createPassProject()
      await store("p1", { "a.txt": "A", "src/b.txt": "B" })
      expect(succeed(await passes.apply("p1", { paths: ["src/b.txt"] }))).toMatchObject({ complete: true, held: 1 })
      expect(readIn(root, "a.txt")).toBe("one\ntwo\nthree\n")
      // What is applied is decided: pass.json refuses it, and it is not written again.
      writeFiles(root, { "src/b.txt": "bee\n" })
      expect(await passes.apply("p1", { paths: ["src/b.txt"] })).toMatchObject({ complete: false })
      expect(readIn(root, "src/b.txt")).toBe("bee\n")
      expect(succeed(await passes.apply("p1", { paths: ["no.txt"] }))).toMatchObject({ complete: false, files: [] })
      expect(await passes.reject("p1")).toEqual({ kind: "rejected", paths: ["a.txt"], held: 0 })
      expect(succeed(await passes.apply("p1", { paths: ["a.txt"] })).complete).toBe(false)
      expect(readIn(root, "a.txt")).toBe("one\ntwo\nthree\n")
      expect(succeed(await passes.collect("p1")).modifications).toHaveLength(2)
      expect(await passes.pending()).toEqual([])
    },
  )

  test(
    promised(
      "pass-over.B2",
      "a held result never writes through a link, over a folder, or over what was made meanwhile",
    ),
    async () => {
      const { root, passes, store } = createPassProject()
      const outside = temporaryFolder()
      await store("p1", { "src/new.txt": "child", "made.txt": "child", folder: "child" })
      removeIn(root, "src")
      symlinkSync(outside, join(root, "src"))
      writeFiles(root, { "made.txt": "user", "folder/x": "user" })
      const result = succeed(await passes.apply("p1", { allOrNothing: false }))
      expect(result.files.map(({ outcome }) => outcome)).toEqual(["conflict", "conflict", "conflict"])
      expect(existsSync(join(outside, "new.txt"))).toBe(false)
      expect([readIn(root, "made.txt"), readIn(root, "folder/x")]).toEqual(["user", "user"])
    },
  )

  test("a held result keeps the permissions of files it writes, and gives new ones those of the process", async () => {
    const { root, begin, passes } = createPassProject()
    chmodSync(join(root, "a.txt"), 0o600)
    const { sandbox } = await begin("p1", { writes: { "a.txt": "x", "new.sh": "y" } })
    chmodSync(join(sandbox, "new.sh"), 0o700)
    succeed(await passes.autoApply("p1"))
    expect(modeOf(join(root, "a.txt"))).toBe(0o600)
    expect(modeOf(join(root, "new.sh"))).toBe(0o777 & ~process.umask())
  })
})

test(promised("pass-over.B2", "a file whose apply could not be noted is taken back and held"), async () => {
  const { root, passes, store } = createPassProject({ files: { "a.txt": "a\n", "b.txt": "b\n" } })
  await store("p1", { "a.txt": "A\n", "b.txt": "B\n" })
  const state = createStateFolder(root)
  let saves = 0
  const write: typeof state.write = async (path, ...rest) => {
    // That of both files, then that of the first alone.
    if (path.endsWith("pass.json") && ++saves <= 2)
      throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" })
    await state.write(path, ...rest)
  }
  const full = connectSandboxes(root, root, { state: { ...state, write } })
  const applied = succeed(await full.apply("p1", { allOrNothing: false }))
  const outcomes = applied.files.map(({ path, outcome }) => `${path} ${outcome}`)
  expect(outcomes).toEqual(["a.txt conflict", "b.txt applied"])
  expect([readIn(root, "a.txt"), readIn(root, "b.txt"), applied.held]).toEqual(["a\n", "B\n", 1])
  expect(succeed(await passes.apply("p1"))).toMatchObject({ complete: true, held: 0 })
  expect(readIn(root, "a.txt")).toBe("A\n")
})

describe("several passes", () => {
  test(
    promised("pass-over.B3", "passes at the same time see nothing of each other, and the second overwrites nothing"),
    async () => {
      const { root, begin, passes } = createPassProject()
      await Promise.all([
        begin("p1", { writes: { "a.txt": "ONE\ntwo\nthree\n", "one.txt": "1" } }),
        begin("p2", { writes: { "a.txt": "one\ntwo\nTHREE\n", "two.txt": "2" } }),
      ])
      const [first, second] = await Promise.all([passes.collect("p1"), passes.collect("p2")])
      expect(summary(succeed(first))).toEqual({ "a.txt": "modified", "one.txt": "added" })
      expect(summary(succeed(second))).toEqual({ "a.txt": "modified", "two.txt": "added" })
      const results = await Promise.all([passes.apply("p1"), passes.apply("p2")])
      const isComplete = results.map((result) => succeed(result).complete)
      expect(isComplete.filter(Boolean)).toHaveLength(1)
      expect(readIn(root, "a.txt")).toBe(isComplete[0] ? "ONE\ntwo\nthree\n" : "one\ntwo\nTHREE\n")
    },
  )

  test(promised("pass-over.B3", "passes in a chain work on, and are applied to, each other's sandboxes"), async () => {
    const { root, begin, passes } = createPassProject()
    const before = projectTree(root)
    await begin("outer", { writes: { "a.txt": "outer\n" } })
    const inner = await begin("inner", { parent: "outer" })
    expect(readIn(inner.sandbox, "a.txt")).toBe("outer\n")
    const reader = succeed(await passes.create("reader", { canModify: false, parent: "inner" }))
    expect(reader).toMatchObject({ directory: inner.sandbox, sandbox: inner.sandbox })
    writeFiles(inner.sandbox, { "src/b.txt": "inner\n" })
    expect(summary(succeed(await passes.collect("inner")))).toEqual({ "src/b.txt": "modified" })
    expect(succeed(await passes.apply("inner")).complete).toBe(true)
    expect(projectTree(root)).toEqual(before)
    expect(summary(succeed(await passes.collect("outer")))).toEqual({ "a.txt": "modified", "src/b.txt": "modified" })
    expect(await passes.apply("inner", {})).toMatchObject({ kind: "refused", code: "wrong-state" })
  })
})

test(promised("soak.B4", "a pass that may change nothing is not remembered after its end"), async () => {
  const { passes } = createPassProject()
  succeed(await passes.create("reader", { canModify: false }))
  expect(succeed(await passes.collect("reader")).modifications).toEqual([])
  expect(await passes.collect("reader")).toMatchObject({ kind: "refused", code: "unknown-pass" })
})

describe("refusals", () => {
  test(
    promised(
      "pass-over.B2",
      "a pass that may change files is refused without git, and for folders that are no project",
    ),
    async () => {
      const { connect } = createPassProject()
      onTestFinished(() => void vi.unstubAllEnvs())
      vi.stubEnv("PATH", "/nowhere")
      expect(await connect().create("p1", { canModify: true })).toMatchObject({ kind: "refused", code: "no-git" })
      expect(await connect().create("p2", { canModify: false })).toMatchObject({ kind: "created", sandbox: undefined })
      vi.unstubAllEnvs()
      const { root, passes } = createPassProject({ git: false })
      vi.stubEnv("HOME", root)
      expect(await passes.create("p1", { canModify: true })).toMatchObject({ kind: "refused", code: "no-repository" })
    },
  )

  test(
    promised("pass-over.B2", "a folder outside git is not refused: it is copied by its own .gitignore"),
    async () => {
      const { root, begin, passes } = createPassProject({ git: false })
      writeFiles(root, { "ignored/x": "x" })
      const { sandbox } = await begin("p1")
      expect(existsSync(join(sandbox, "ignored"))).toBe(false)
      writeFiles(sandbox, { "a.txt": "child\n" })
      removeIn(sandbox, "src")
      expect(succeed(await passes.autoApply("p1")).complete).toBe(true)
      expect([readIn(root, "a.txt"), existsSync(join(root, "src"))]).toEqual(["child\n", false])
    },
  )

  test(
    promised("pass-over.B3", "a pass whose files cannot be read is listed as damaged, beside the others"),
    async () => {
      const { root, begin, passes, connect, store } = createPassProject()
      await begin("p1")
      await store("p2", {})
      writeFiles(passPlace(root, "p2"), { "files/changes.json": '{"version":1,' })
      const [working, damaged] = await connect().pending()
      expect(damaged).toMatchObject({ passID: idOf("p2"), state: "damaged", isOwned: false })
      expect(damaged?.reason).toContain("SyntaxError")
      expect(working).toMatchObject({ passID: idOf("p1"), state: "working", isOwned: true })
      expect(await passes.apply("p2")).toMatchObject({ kind: "refused", code: "failed" })
    },
  )

  test(promised("pass-over.B2", "a sandbox that cannot be made is refused, and nothing of it stays"), async () => {
    const { root, passes, begin } = createPassProject()
    writeFiles(root, { ".git/index": "no index" })
    expect(await passes.create("p1", { canModify: true })).toMatchObject({ kind: "refused", code: "failed" })
    expect(await passes.pending()).toEqual([])
    removeIn(root, ".git/index")
    gitIn(root, "reset", "-q")
    expect((await begin("p1")).skipped).toEqual([])
  })

  test("an unknown pass, one that still works, an id twice, and an id that leads out of the folder are refused", async () => {
    const { root, passes, begin } = createPassProject()
    const { sandbox } = await begin("p1")
    for (const id of ["nobody", "../../x", ""])
      expect(await passes.apply(id)).toMatchObject({ kind: "refused", code: "unknown-pass" })
    expect(await passes.create("../x", { canModify: true })).toMatchObject({ code: "unknown-pass" })
    expect(await passes.create("p2", { canModify: true, parent: "nobody" })).toMatchObject({ code: "unknown-pass" })
    expect(await passes.create("p1", { canModify: true })).toMatchObject({ code: "wrong-state" })
    expect(await passes.apply("p1")).toMatchObject({ code: "wrong-state" })
    expect(await passes.reject("p1")).toMatchObject({ kind: "refused" })
    const other = connectSandboxes(root, root, { lockWaitMs: 0 })
    expect(await other.collect("p1")).toMatchObject({ code: "busy" })
    expect(readIn(sandbox, "a.txt")).toContain("one")
    writeFiles(sandbox, { "a.txt": "x" })
    expect(succeed(await passes.collect("p1")).modifications).toHaveLength(1)
  })
})

describe("many files", () => {
  const MANY = Object.fromEntries(Array.from({ length: 250 }, (_, at) => [`many/${at}.txt`, `${at}\n`]))

  test.each([
    ["recorded with 200 others", 0, 2],
    ["tried alone where their group failed", 1, 202],
  ])(promised("passes.A6", "many files are %s, and all of them applied"), async (_how, failing, expected) => {
    const { root, begin } = createPassProject()
    let records = 0
    const isNoted = () => {
      if (records++ < failing) throw new Error("the disk was full for a moment")
      return true
    }
    const passes = connectSandboxes(root, root, { isNoted })
    await begin("p1", { passes, writes: MANY })
    const applied = succeed(await passes.autoApply("p1"))
    expect(applied).toMatchObject({ complete: true, held: 0 })
    expect(readIn(root, "many/249.txt")).toBe("249\n")
    expect(records).toBe(expected)
  })
})
