import { execFileSync } from "node:child_process"
import fs, {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { join } from "node:path"
import { describe, expect, onTestFinished, test, vi } from "vitest"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import {
  ensureSigner,
  findForeign,
  listAside,
  MARK,
  makeState,
  NEWER,
  quarantine,
  readSigner,
  STATE_FORMAT,
  signFor,
} from "../../../.opencode/baton/host/state-mark.ts"
import { createAuditLog } from "../../../.opencode/baton/pass-over/audit/log.ts"
import { promised } from "../../requirements.ts"
import { GIT_IDENTITY } from "../../support/opencode/test-project.ts"
import { createRecordedLog, temporaryFolder } from "../../support/unit.ts"

/** A project of an account with a home of its own. */
const open = () => {
  const home = temporaryFolder()
  vi.stubEnv("BATON_STATE_KEY", "")
  vi.stubEnv("XDG_STATE_HOME", home)
  const root = join(temporaryFolder(), "project")
  mkdirSync(join(root, ".opencode"), { recursive: true })
  const state = createStateFolder(root)
  const git = (...args: string[]) => execFileSync("git", ["-C", root, ...GIT_IDENTITY, ...args], { stdio: "pipe" })
  return { home, root, state, git, write: (path: string) => state.write(state.path(path), "x") }
}

const modesOf = (...paths: string[]) => paths.map((path) => (statSync(path).mode & 0o777).toString(8))

/** Watches a call of the file system, also in modules that imported it by name. */
const watch = (call: "linkSync" | "fsyncSync") => {
  const spy = vi.spyOn(fs, call)
  syncBuiltinESMExports()
  onTestFinished(() => {
    spy.mockRestore()
    syncBuiltinESMExports()
  })
  return spy
}

describe("the mark of a state folder", () => {
  test(
    promised(
      "trust.A1",
      "the mark of a state folder is there from the first file on, and goes with a folder that is moved",
    ),
    async () => {
      const { root, state, write } = open()
      expect(findForeign(root)).toBeUndefined()
      await write("tasks/a.json")
      expect(findForeign(root)).toBeUndefined()
      renameSync(root, `${root}-moved`)
      expect(findForeign(`${root}-moved`)).toBeUndefined()
      expect(quarantine(`${root}-moved`)).toBeUndefined()
      await createStateFolder(`${root}-moved`).write(join(`${root}-moved`, ".opencode/state/b"), "y")
      expect(existsSync(state.root)).toBe(false)
    },
  )

  test(
    promised("trust.A1", "the mark of a state folder does not count in a copy, which is put aside whole"),
    async () => {
      const { root, write } = open()
      await write("tasks/a.json")
      cpSync(root, `${root}-copy`, { recursive: true })
      const aside = quarantine(`${root}-copy`)
      expect(aside?.reason).toContain("is a copy or a backup")
      expect(listAside(`${root}-copy`)).toEqual([aside?.path.split("/").at(-1)])
      expect(readFileSync(join(aside?.path ?? "", "tasks/a.json"), "utf8")).toBe("x")
      expect(existsSync(join(`${root}-copy`, ".opencode/state"))).toBe(false)
      expect(findForeign(root), "the original is as it was").toBeUndefined()
    },
  )

  const FORGERIES: [string, (mark: string) => void][] = [
    ["is missing", (mark) => rmSync(mark)],
    ["is another text", (mark) => writeFileSync(mark, "0".repeat(64))],
    ["is a folder", (mark) => [rmSync(mark), mkdirSync(mark)]],
    ["is a link", (mark) => [renameSync(mark, `${mark}.own`), symlinkSync(`${mark}.own`, mark)]],
    ["is one of another account", () => vi.stubEnv("XDG_STATE_HOME", temporaryFolder())],
    ["is one of another key", () => vi.stubEnv("BATON_STATE_KEY", "another")],
  ]
  test.each(FORGERIES)(promised("trust.A1", "a mark that %s makes a foreign folder"), async (_how, forge) => {
    const { root, state, write } = open()
    await write("tasks/a.json")
    forge(state.path(MARK))
    expect(findForeign(root)).toBeDefined()
  })

  test(
    promised("trust.A1", "the mark of a state folder can be made with a key of the environment's, in a new home, too"),
    async () => {
      const { root, write } = open()
      vi.stubEnv("BATON_STATE_KEY", "a key of mine")
      await write("tasks/a.json")
      vi.stubEnv("XDG_STATE_HOME", temporaryFolder())
      expect(findForeign(root)).toBeUndefined()
    },
  )

  test(promised("trust.A5", "a mark of a newer format leaves the state where it is, and says so"), async () => {
    const { root, state, write } = open()
    await write("tasks/a.json")
    const mark = (format: number) => {
      const text = `${format} ${signFor(state.root, `Baton's state, format ${format}`)}\n`
      writeFileSync(state.path(MARK), text)
      return text
    }
    expect(readFileSync(state.path(MARK), "utf8")).toBe(mark(STATE_FORMAT))
    expect(findForeign(root)).toBeUndefined()
    const newer = mark(STATE_FORMAT + 1)
    expect(findForeign(root)).toBe(NEWER)
    expect(() => quarantine(root)).toThrow(/a newer Baton.* Update Baton/)
    writeFileSync(state.path(MARK), newer.replace(/.$/m, "x"))
    expect(findForeign(root), "which is signed").toContain("this account did not make it here")
  })

  test(promised("trust.A1", "a mark without a place for its key lets state work, and is explained"), async () => {
    const { root, home, state, write } = open()
    vi.stubEnv("XDG_STATE_HOME", join(home, "file"))
    writeFileSync(join(home, "file"), "")
    await write("tasks/a.json")
    expect(readFileSync(state.path("tasks/a.json"), "utf8")).toBe("x")
    expect(findForeign(root)).toContain("BATON_STATE_KEY can hold one")
  })

  test(
    promised("trust.A1", "the mark of a state folder is made with a new key where a power cut left an empty one"),
    async () => {
      const { root, home, write } = open()
      const key = join(home, "baton/state.key")
      mkdirSync(join(home, "baton"))
      writeFileSync(key, "")
      await write("tasks/a.json")
      expect(findForeign(root)).toBeUndefined()
      expect(readFileSync(key, "utf8")).toMatch(/^[0-9a-f]{64}\n$/)
      expect(readdirSync(join(home, "baton"))).toEqual(["state.key"])
    },
  )

  test(promised("trust.A1", "words are signed with a new key where no state folder could be written"), () => {
    const { home } = open()
    expect(readSigner()).toBeUndefined()
    const signature = ensureSigner()("Use tabs.")
    expect(readSigner()?.("Use tabs.")).toBe(signature)
    rmSync(join(home, "baton"), { recursive: true })
    writeFileSync(join(home, "baton"), "")
    expect(ensureSigner).toThrow("EEXIST")
  })

  test(promised("trust.A1", "the mark of a state folder is made where the file system has no hard links"), async () => {
    const { root, write } = open()
    const link = watch("linkSync").mockImplementation(() => {
      throw Object.assign(new Error("operation not permitted"), { code: "EPERM" })
    })
    await write("tasks/a.json")
    expect(link).toHaveBeenCalled()
    expect(findForeign(root)).toBeUndefined()
  })

  test(promised("trust.A1", "a mark and its key are flushed before they have their names"), async () => {
    const { state, write } = open()
    const flushed = watch("fsyncSync")
    await write("tasks/a.json")
    expect(flushed).toHaveBeenCalledTimes(2)
    expect(existsSync(state.path(MARK))).toBe(true)
  })

  test(
    promised("trust.A1", "the mark of a state folder is made in an empty folder, and with two at once in one"),
    async () => {
      const { root, state } = open()
      mkdirSync(state.root)
      expect(findForeign(root)).toBeUndefined()
      await Promise.all([0, 1, 2].map((at) => createStateFolder(root).write(state.path(`${at}`), "x")))
      expect(findForeign(root)).toBeUndefined()
      expect(readdirSync(join(root, ".opencode"))).toEqual(["state"])
    },
  )
})

describe("a state folder", () => {
  test(
    promised("trust.A1", "a state folder behind a link that leads out of the project is neither moved nor used"),
    async () => {
      const { root, home } = open()
      const elsewhere = join(home, "elsewhere")
      mkdirSync(join(elsewhere, "state"), { recursive: true })
      writeFileSync(join(elsewhere, "state", "mine"), "mine")
      rmSync(join(root, ".opencode"), { recursive: true })
      symlinkSync(elsewhere, join(root, ".opencode"))
      expect(() => quarantine(root)).toThrow(/is not used, since \.opencode is a link/)
      expect(readdirSync(elsewhere)).toEqual(["state"])
    },
  )

  const INDEXES: [string, string[]][] = [
    ["as it is", ["status"]],
    ["of version 4", ["update-index", "--index-version", "4"]],
    ["split in two", ["update-index", "--split-index"]],
  ]
  test.each(INDEXES)(
    promised("trust.A1", "a state folder with a file that git tracks is foreign, by an index %s"),
    async (_how, args) => {
      const { root, state, git, write } = open()
      git("init", "-q")
      await write("outbox/1.json")
      await write("of-mine")
      writeFileSync(join(root, ".opencode/a.json"), "{}")
      git("add", ".opencode/a.json")
      git(...args)
      expect(findForeign(root), "ignored files are no reason").toBeUndefined()
      git("add", "-f", ".opencode/state/outbox", ".opencode/state/.gitignore")
      git(...args)
      expect(findForeign(root)).toBe("git tracks .opencode/state/outbox/1.json")
      rmSync(state.path("outbox"), { recursive: true })
      expect(findForeign(root), "what was put aside before is no reason").toBeUndefined()
    },
  )

  test(promised("trust.A1", "a state folder with a file that git tracks among many is foreign"), async () => {
    const { root, git, write } = open()
    git("init", "-q")
    await write("outbox/1.json")
    git("add", "-f", ".opencode/state/outbox")
    const [, blob = ""] = git("ls-files", "-s", ".opencode/state/outbox").toString().split(" ")
    const names = Array.from({ length: 20_000 }, (_, at) => `100644 ${blob}\t.opencode/state/${"x".repeat(40)}/${at}\n`)
    execFileSync("git", ["-C", root, "update-index", "--index-info"], { input: names.join("") })
    expect(findForeign(root)).toBe("git tracks .opencode/state/outbox/1.json")
  })

  test(promised("trust.A1", "a state folder where git fails is this account's by its mark alone"), async () => {
    const { root, state, git, write } = open()
    await write("tasks/a.json")
    git("init", "-q")
    writeFileSync(join(root, "a"), "a")
    git("add", "a")
    git("update-index", "--index-version", "4")
    vi.stubEnv("PATH", temporaryFolder())
    expect(quarantine(root)).toBeUndefined()
    rmSync(state.path(MARK))
    expect(quarantine(root)?.reason).toContain("this account did not make it here")
  })

  test(promised("trust.A7", "a state folder is for its account alone, and so are the audit and its key"), async () => {
    const { root, home, state, write } = open()
    await write("tasks/a.json")
    const keys = join(home, "baton")
    const own = [state.root, state.path("tasks/a.json"), keys, join(keys, "state.key")]
    expect(modesOf(...own)).toEqual(["700", "600", "700", "600"])
    makeState(state.root)
    const entry = { at: "2026-01-01T00:00:00Z", root_session_id: "ses_1" }
    await createAuditLog({ projectRoot: root, log: createRecordedLog() }).append(entry as never)
    const audit = join(root, ".opencode/pass-over-logs")
    const month = join(audit, "2026-01")
    expect(modesOf(audit, month, join(month, "session-ses_1-passes.jsonl"))).toEqual(["700", "700", "600"])
  })
})
