import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"

const SCRIPTS = join(import.meta.dirname, "..", "..", "..", "scripts")

let folder = ""
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "baton-demo-line-"))
  mkdirSync(join(folder, "full"))
  writeFileSync(join(folder, "full", "mine.txt"), "mine")
  writeFileSync(join(folder, "file"), "")
  symlinkSync(join(folder, "nowhere"), join(folder, "dangling"))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const run = (script: string, ...args: string[]) =>
  spawnSync(join(SCRIPTS, script), args, { cwd: folder, encoding: "utf8", timeout: 20_000 })

describe("the demo's command line", () => {
  test(promised("install.E3", "--help tells the options and exits 0 without setting anything up"), () => {
    const { status, stdout, stderr } = run("demo", "--help")
    for (const option of ["--model PROVIDER/MODEL", "--keep DIR", "--without-baton", "Exit status"]) {
      expect(stdout).toContain(option)
    }
    expect(stderr).toBe("")
    expect(status).toBe(0)
  })

  test.each([
    [["--modle", "a/b"], "unknown argument: --modle"],
    [["--model"], "--model needs a value"],
    [["--model", "sonnet"], "expected --model PROVIDER/MODEL, received 'sonnet'"],
    [["--model=/sonnet"], "expected --model PROVIDER/MODEL, received '/sonnet'"],
    [["--keep"], "--keep needs a value"],
    [["--keep="], "--keep needs the name of a folder"],
    [["--keep", "full"], "is not empty; name an empty or a new folder"],
    [["--keep", "file"], "is not a folder"],
    [["--keep", "dangling"], "is not a folder"],
    [["--without-baton", "--model", "a/b"], "--without-baton shows the scripted model"],
  ])(promised("install.E3", "%j is refused before anything is set up"), (args, message) => {
    const { status, stdout, stderr } = run("demo", ...args)
    expect(stderr).toContain(message)
    expect(stderr).toContain("Try: ./scripts/demo --help")
    expect(stdout).toBe("")
    expect(status).toBe(2)
  })

  test(promised("install.E3", "the picture's script takes no arguments"), () => {
    expect(run("picture", "--help")).toMatchObject({ status: 0, stderr: "" })
    expect(run("picture", "out.svg")).toMatchObject({ status: 2, stdout: "" })
  })
})
