import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { createPromptFiles, PROMPT_LIMIT_BYTES } from "../../.opencode/baton/task/prompt-files.ts"
import { promised } from "../requirements.ts"

let root: string
let path: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "baton-prompts-"))
  mkdirSync(join(root, "prompts"))
  path = join(root, "prompts", "handoff.md")
})

afterEach(() => {
  rmSync(root, { recursive: true, force: true })
})

const read = () => createPromptFiles({ root }).read("handoff")

describe("a prompt file", () => {
  test(promised("compaction.C2", "is read anew each time"), async () => {
    const files = createPromptFiles({ root })
    writeFileSync(path, "first")
    expect(await files.read("handoff")).toEqual({ kind: "text", text: "first" })
    writeFileSync(path, "second")
    expect(await files.read("handoff")).toEqual({ kind: "text", text: "second" })
    rmSync(path)
    expect(await files.read("handoff")).toMatchObject({ kind: "unusable" })
  })

  test(promised("compaction.C2", "is looked up by its name in the project's folder of prompts"), async () => {
    writeFileSync(join(root, "prompts", "planner.md"), "# Planner")
    const files = createPromptFiles({ root })
    expect(await files.read("planner")).toEqual({ kind: "text", text: "# Planner" })
    expect(await files.read("worker")).toMatchObject({ path: join(root, "prompts", "worker.md") })
  })

  test(promised("compaction.C2", "loses its byte order mark and its CRLF"), async () => {
    writeFileSync(path, "\uFEFF# Übergabe\r\n\r\nSag’s kurz 🏁\r\n")
    expect(await read()).toEqual({ kind: "text", text: "# Übergabe\n\nSag’s kurz 🏁\n" })
  })

  test(promised("compaction.C2", "may be 64 KB long and not a byte longer"), async () => {
    writeFileSync(path, "x".repeat(PROMPT_LIMIT_BYTES))
    expect(await read()).toEqual({ kind: "text", text: "x".repeat(PROMPT_LIMIT_BYTES) })
    writeFileSync(path, "x".repeat(PROMPT_LIMIT_BYTES + 1))
    expect(await read()).toEqual({ kind: "unusable", path, reason: "it is larger than 65536 bytes" })
  })

  test(promised("compaction.C2", "may be a link to another file"), async () => {
    writeFileSync(join(root, "shared.md"), "shared")
    symlinkSync(join(root, "shared.md"), path)
    expect(await read()).toEqual({ kind: "text", text: "shared" })
  })
})

/** Every way in which a file can fail to be a prompt, and the words for it. */
const UNUSABLE: readonly (readonly [what: string, make: () => void, reason: string])[] = [
  ["is missing", () => {}, "it does not exist"],
  ["is missing with its folder", () => rmSync(join(root, "prompts"), { recursive: true }), "it does not exist"],
  ["is a link to nothing", () => symlinkSync(join(root, "nothing"), path), "it does not exist"],
  ["is a link to itself", () => symlinkSync(path, path), "it cannot be read: ELOOP"],
  ["is a folder", () => mkdirSync(path), "it is a folder, not a file"],
  ["is a pipe that nobody writes to", () => execFileSync("mkfifo", [path]), "it is not a regular file"],
  ["is a device", () => symlinkSync("/dev/zero", path), "it is not a regular file"],
  ["is empty", () => writeFileSync(path, ""), "it is empty"],
  ["is blank", () => writeFileSync(path, " \r\n\t\n\u00a0"), "it is empty"],
  ["is a byte order mark alone", () => writeFileSync(path, "\uFEFF"), "it is empty"],
  ["is 10 MB long", () => writeFileSync(path, Buffer.alloc(10_000_000, "x")), "it is larger than 65536 bytes"],
  ["is binary", () => writeFileSync(path, Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0xff, 0xfe])), "it is not UTF-8 text"],
  ["is UTF-16", () => writeFileSync(path, "\uFEFFhello", "utf16le"), "it is not UTF-8 text"],
  ["is Latin-1", () => writeFileSync(path, "\u00e9t\u00e9", "latin1"), "it is not UTF-8 text"],
  ["holds NUL bytes", () => writeFileSync(path, "a\0b"), "it holds NUL bytes, so it is not text"],
]

test.each(UNUSABLE)(
  promised("compaction.C2", "is refused with its path and a reason when it %s"),
  async (_w, make, reason) => {
    make()
    expect(await read()).toEqual({ kind: "unusable", path, reason })
  },
)

test(promised("compaction.C2", "is refused when the folder of prompts is a file"), async () => {
  rmSync(join(root, "prompts"), { recursive: true })
  writeFileSync(join(root, "prompts"), "x")
  expect(await read()).toEqual({ kind: "unusable", path, reason: "it cannot be read: ENOTDIR" })
})
