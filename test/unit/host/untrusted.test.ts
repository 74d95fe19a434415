import { execFileSync } from "node:child_process"
import { chownSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeEach, describe, expect, onTestFinished, test } from "vitest"
import { SILENT } from "../../../.opencode/baton/host/log.ts"
import { readSettings } from "../../../.opencode/baton/host/settings.ts"
import {
  openOwnToAppend,
  RefusedFile,
  readOwnText,
  readOwnTextSync,
  readProjectConfig,
} from "../../../.opencode/baton/host/untrusted.ts"
import { findSkillAgents } from "../../../.opencode/baton/pass-over/agents.ts"
import { readPolicy } from "../../../.opencode/baton/pass-over/policy/policy.ts"
import { createPromptFiles } from "../../../.opencode/baton/task/prompts.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"

const IS_ROOT = process.getuid?.() === 0

let root: string
let path: string

beforeEach(() => {
  root = temporaryFolder()
  path = join(root, "file")
})

describe("a file of Baton's own", () => {
  test.each<[string, () => void, string]>([
    ["a folder", () => mkdirSync(path), "it is a folder, not a file"],
    ["a pipe that is never written to", () => execFileSync("mkfifo", [path]), "it is not a regular file"],
    ["a link to a device", () => symlinkSync("/dev/zero", path), "it is a link"],
    ["a link to a file", () => symlinkSync("/etc/passwd", path), "it is a link"],
    ["a link to nothing", () => symlinkSync("nothing", path), "it is a link"],
    ["larger than its bound", () => writeFileSync(path, "x".repeat(11)), "it is larger than 10 bytes"],
  ])(promised("trust.A4", "a file of Baton's own is refused when it is %s"), async (_what, make, reason) => {
    make()
    const refused = new RefusedFile(reason)
    expect(() => readOwnTextSync(path, { maxBytes: 10 })).toThrow(refused)
    await expect(readOwnText(path, { maxBytes: 10 })).rejects.toThrow(refused)
  })

  test.each<[string, () => void]>([
    ["a pipe", () => execFileSync("mkfifo", [path])],
    ["a link", () => symlinkSync("elsewhere", path)],
  ])(promised("trust.A4", "a file of Baton's own is not written to when it is %s"), (_what, make) => {
    make()
    expect(() => openOwnToAppend(path, 0o600)).toThrow(/not a regular file|ELOOP/)
  })

  test.runIf(IS_ROOT)(
    promised("trust.A4", "a file of Baton's own is refused when it is of another account than its folder"),
    () => {
      writeFileSync(path, "theirs")
      chownSync(path, 65_534, 65_534)
      expect(() => readOwnTextSync(path)).toThrow(new RefusedFile("it belongs to another account"))
      // As root in a container, with a project of the person's.
      chownSync(root, 65_534, 65_534)
      expect(readOwnTextSync(path)).toBe("theirs")
    },
  )

  test.each([0, 1, 4096, 4097, 100_000])(
    promised("trust.A4", "a file of Baton's own is read to its end, %i bytes"),
    async (size) => {
      writeFileSync(path, "x".repeat(size))
      expect(readOwnTextSync(path)).toBe("x".repeat(size))
      expect(await readOwnText(path, { maxBytes: size })).toBe("x".repeat(size))
    },
  )

  test("a file of Baton's own that the kernel makes, which has no size, is read, too", () => {
    expect(readOwnTextSync("/proc/self/status", { isForeign: true })).toContain(`Pid:\t${process.pid}`)
  })
})

describe("a file that sets Baton up", () => {
  const linkFile = () => {
    mkdirSync(join(root, "prompts"))
    symlinkSync("../elsewhere/handoff.md", join(root, "prompts", "handoff.md"))
  }
  const linkFolder = () => symlinkSync("elsewhere", join(root, "prompts"))

  test.each([
    ["file", linkFile],
    ["folder", linkFolder],
  ])(promised("trust.A4", "a settings file may be behind a link to a %s, within its limit"), (_what, link) => {
    mkdirSync(join(root, "elsewhere"))
    writeFileSync(join(root, "elsewhere", "handoff.md"), "shared")
    link()
    expect(readProjectConfig(root, "prompts/handoff.md").toString()).toBe("shared")
    expect(() => readProjectConfig(root, "prompts/handoff.md", { maxBytes: 3 })).toThrow(RefusedFile)
  })

  test(promised("trust.A4", "a file that sets Baton up is refused behind a link to a device"), () => {
    symlinkSync("/dev/zero", path)
    expect(() => readProjectConfig(root, "file")).toThrow(RefusedFile)
  })
})

describe.each(["OPENCODE_DISABLE_PROJECT_CONFIG", "OPENCODE_PURE"])("the variable %s of OpenCode", (name) => {
  const read = async () => {
    const [settings, policy, skills] = await Promise.all([
      readSettings(root),
      readPolicy(root),
      findSkillAgents(root, SILENT),
    ])
    return [settings.settings.claims, policy.kind, createPromptFiles({ root }).read("handoff").kind, skills.length]
  }

  test.each([
    ["1", false],
    ["TRUE", false],
    ["0", true],
    ["", true],
  ])(
    promised("trust.A3", "with '%s' in the variable of OpenCode, the project's own files count: %s"),
    async (value, counts) => {
      for (const folder of ["prompts", ".opencode/skill"]) mkdirSync(join(root, folder), { recursive: true })
      writeFileSync(join(root, ".opencode/baton.json"), '{"claims":"off"}')
      writeFileSync(join(root, ".opencode/pass-over.json"), "no policy")
      writeFileSync(join(root, "prompts/handoff.md"), "<!-- baton:handoff -->\nSum it up.\n")
      writeFileSync(join(root, ".opencode/skill/mine.md"), "---\nsubagent: true\n---\nDo it.\n")
      const before = process.env[name]
      process.env[name] = value
      onTestFinished(() => {
        if (before === undefined) delete process.env[name]
        else process.env[name] = before
      })
      expect(await read()).toEqual(counts ? ["off", "unusable", "text", 1] : ["shared", "policy", "unusable", 0])
    },
  )
})
