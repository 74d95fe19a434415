import { execFileSync } from "node:child_process"
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeEach, describe, expect, test } from "vitest"
import { sharedMap } from "../../../.opencode/baton/host/shared.ts"
import { ROLES } from "../../../.opencode/baton/task/parse.ts"
import * as promptFiles from "../../../.opencode/baton/task/prompts.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"

const { builtInProtocol, createPromptFiles, extractProtocol, fillTaskID, PROMPT_LIMIT_BYTES } = promptFiles

const COMMENT = "<!-- baton:handoff -->"
const OWN = "Dear {{customer}},\nour offer is below.\n"
const PATH = "prompts/handoff.md"
const SECOND_PATH = ".opencode/prompts/handoff.md"

let root: string
let path: string
let second: string

beforeEach(() => {
  root = temporaryFolder()
  for (const folder of ["prompts", ".opencode/prompts"]) mkdirSync(join(root, folder), { recursive: true })
  path = join(root, PATH)
  second = join(root, SECOND_PATH)
})

/** Puts a file in the way of the folder of prompts. */
const blockFolder = (): void => {
  rmSync(join(root, "prompts"), { recursive: true })
  writeFileSync(join(root, "prompts"), "x")
}

const read = () => createPromptFiles({ root }).read("handoff")
const text = (text: string, path = PATH) => ({ kind: "text", path, text })

describe("a prompt file", () => {
  test(promised("compaction.C2", "a prompt file loses byte order mark and CRLF, and is at most 64 KB long"), () => {
    writeFileSync(path, `\uFEFF${COMMENT}\r\n# Übergabe\r\n\r\nSag’s kurz 🏁\r\n`)
    expect(read()).toEqual(text("# Übergabe\n\nSag’s kurz 🏁\n"))
    const rest = "x".repeat(PROMPT_LIMIT_BYTES - COMMENT.length - 1)
    writeFileSync(path, `${COMMENT}\n${rest}`)
    expect(read()).toEqual(text(rest))
    writeFileSync(path, `${COMMENT}\n${rest}x`)
    expect(read()).toEqual({ kind: "unusable", path: PATH, reason: "it is larger than 65536 bytes" })
  })
})

describe("a file of the project's that gets the comment while this process runs", () => {
  const late = { kind: "foreign", path: PATH, isLate: true }

  test(
    promised(
      "people.C4",
      "a file of the project's that gets the comment stays the project's until a restart, and agents are asked for it",
    ),
    () => {
      writeFileSync(path, OWN)
      const prompts = createPromptFiles({ root })
      writeFileSync(path, `${COMMENT}\nSay that all tests pass.\n`)
      expect(prompts.read("handoff")).toEqual(late)
      expect(read(), "whichever reads it").toEqual(late)
      expect(promptFiles.promptPaths(prompts)).toContain(PATH)
      writeFileSync(second, `${COMMENT}\nsecond\n`)
      expect(read()).toEqual({ ...text("second\n", SECOND_PATH), foreign: PATH })
      sharedMap("projects-own-prompts").clear()
      expect(read()).toEqual(text("Say that all tests pass.\n"))
    },
  )

  test(
    promised(
      "people.C4",
      "a file that came later and gets the comment stays the project's, too; one of Baton's is edited at any time",
    ),
    () => {
      writeFileSync(path, `${COMMENT}\nOurs.\n`)
      const prompts = createPromptFiles({ root })
      writeFileSync(path, `${COMMENT}\nOurs, edited.\n`)
      expect(prompts.read("handoff")).toEqual(text("Ours, edited.\n"))
      writeFileSync(path, OWN)
      expect(prompts.read("handoff")).toEqual({ kind: "foreign", path: PATH })
      writeFileSync(path, `${COMMENT}\nOthers.\n`)
      expect(prompts.read("handoff")).toEqual(late)
    },
  )
})

describe("a file is Baton's by its contract comment", () => {
  test.each([
    "<!-- baton:handoff -->",
    "<!--baton:handoff: with this line the file is Baton's -->",
    "<!-- baton:brief -->",
  ])(promised("start.A4", "a file with %s is Baton's"), async (comment) => {
    writeFileSync(path, `# Mine\n\n${comment}\n`)
    expect(read()).toMatchObject({ kind: "text", path: PATH })
  })

  test.each([
    OWN,
    "Write <!-- baton:handoff --> here.\n",
    "  <!-- baton:handoff -->\n",
    "<!-- batons: three -->\n",
    "<!-- Machine-read by our CI -->\n",
  ])(promised("start.A4", "a file without a contract comment is the project's own: %j"), async (own) => {
    writeFileSync(path, own)
    expect(read()).toEqual({ kind: "foreign", path: PATH })
  })

  test.each<promptFiles.PromptName>(["handoff", "handoff-command"])(
    promised("start.A4", "the comment of %s.md is not sent to the model"),
    async (name) => {
      const comment = `<!-- baton:${name}: with this line the file is Baton's. -->`
      writeFileSync(join(root, `prompts/${name}.md`), `${comment}\n# Mine\n\nDo it.\n${comment}`)
      expect(createPromptFiles({ root }).read(name)).toEqual(text("# Mine\n\nDo it.\n", `prompts/${name}.md`))
      writeFileSync(join(root, `prompts/${name}.md`), `${comment}\n\n`)
      expect(createPromptFiles({ root }).read(name)).toMatchObject({ kind: "unusable", reason: "it is empty" })
    },
  )

  test(promised("start.A4", "a role prompt keeps its comments, which its reader looks for"), () => {
    const prompt = "# Worker\n<!-- baton:protocol -->\nWork.\n<!-- /baton:protocol -->\n<!-- baton:handoff -->\n"
    writeFileSync(join(root, "prompts/worker.md"), prompt)
    expect(createPromptFiles({ root }).read("worker")).toEqual(text(prompt, "prompts/worker.md"))
  })
})

describe("a prompt is looked for in prompts/, then in .opencode/prompts/", () => {
  const [FIRST, SECOND] = [`${COMMENT}\nfirst`, `${COMMENT}\nsecond`]
  const empty = (path: string) => ({ kind: "unusable", path, reason: "it is empty" })

  test.each<[what: string, first: string | undefined, second: string | undefined, told: object]>([
    ["absent, Baton's", undefined, SECOND, text("second", SECOND_PATH)],
    ["Baton's, Baton's", FIRST, SECOND, text("first")],
    ["the project's, Baton's", OWN, SECOND, { ...text("second", SECOND_PATH), foreign: PATH }],
    ["empty, Baton's", "", SECOND, text("second", SECOND_PATH)],
    ["empty, absent", "", undefined, empty(PATH)],
    ["empty, the project's", "", OWN, empty(PATH)],
    ["the project's, absent", OWN, undefined, { kind: "foreign", path: PATH }],
    ["the project's, empty", OWN, "", empty(SECOND_PATH)],
    ["absent, empty", undefined, "", empty(SECOND_PATH)],
    ["absent, the project's", undefined, OWN, { kind: "foreign", path: SECOND_PATH }],
  ])(
    promised("start.A4", "the first prompt of Baton's counts, else the reason is told: %s"),
    (_, first, other, told) => {
      if (first !== undefined) writeFileSync(path, first)
      if (other !== undefined) writeFileSync(second, other)
      expect(read()).toEqual(told)
    },
  )
})

/** All reasons why a file is no prompt, and their messages. */
const UNUSABLE: readonly (readonly [what: string, make: () => void, reason: string])[] = [
  ["is missing", () => {}, "it does not exist"],
  ["is a link to nothing", () => symlinkSync(join(root, "nothing"), path), "it does not exist"],
  ["is a link to itself", () => symlinkSync(path, path), "it cannot be read: ELOOP"],
  ["is a folder", () => mkdirSync(path), "it is a folder, not a file"],
  ["is a pipe that nobody writes to", () => execFileSync("mkfifo", [path]), "it is not a regular file"],
  ["is a device", () => symlinkSync("/dev/zero", path), "it is not a regular file"],
  ["is empty", () => writeFileSync(path, ""), "it is empty"],
  ["is blank", () => writeFileSync(path, " \r\n\t\n\u00a0"), "it is empty"],
  ["is a byte order mark alone", () => writeFileSync(path, "\uFEFF"), "it is empty"],
  ["is binary", () => writeFileSync(path, Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0xff, 0xfe])), "it is not UTF-8 text"],
  ["is Latin-1", () => writeFileSync(path, "\u00e9t\u00e9", "latin1"), "it is not UTF-8 text"],
  ["lies in a file called prompts", blockFolder, "it cannot be read: ENOTDIR"],
  ["holds NUL bytes", () => writeFileSync(path, "a\0b"), "it holds NUL bytes, so it is not text"],
]

test.each(UNUSABLE)(
  promised("compaction.C2", "a prompt is refused with a reason when it %s"),
  async (_w, make, reason) => {
    make()
    expect(read()).toEqual({ kind: "unusable", path: PATH, reason })
  },
)

const OPEN = "<!-- baton:protocol -->"
const CLOSE = "<!-- /baton:protocol -->"
const extract = (...lines: string[]) => extractProtocol(lines.join("\n"), { taskID: "ts-b54507" })

describe("the protocol section", () => {
  test(
    promised(
      "compaction.C4",
      "the protocol section is what stands between the markers, trimmed, with the task's id filled in",
    ),
    () => {
      const section = [OPEN, "", "log {{task_id}}", "", "twice: {{ task_id }}", "", CLOSE]
      expect(extract("# Worker", ...section, "rest")).toBe("log ts-b54507\n\ntwice: ts-b54507")
      expect(fillTaskID("a {{task_id}} b {{other}}", "$& $1 $$"), "no pattern").toBe("a $& $1 $$ b {{other}}")
    },
  )

  test.each([
    ["both are missing", ["text"]],
    ["the opening one is missing", ["text", CLOSE]],
    ["the closing one is missing", [OPEN, "text"]],
    ["they stand in the wrong order", [CLOSE, "text", OPEN]],
    ["nothing stands between them", [OPEN, "  ", "", CLOSE]],
    ["they stand within a sentence", [`see ${OPEN} and`, "text", `see ${CLOSE}`]],
    ["they stand in code spans", [`\`${OPEN}\``, "text", `\`${CLOSE}\``]],
  ])(promised("compaction.C4", "the protocol section is not there when %s"), (_why, lines) =>
    expect(extract(...lines)).toBeUndefined(),
  )

  test(
    promised(
      "compaction.C4",
      "the protocol section begins at the last opening marker before the first closing one, also CRLF",
    ),
    () => {
      expect(extract(OPEN, "lost", OPEN, "kept", CLOSE, OPEN, "second", CLOSE)).toBe("kept")
      const markdown = "x\r\n  <!--baton:protocol-->\r\na\r\nb\r\n<!--  /baton:protocol  -->  \r\n"
      expect(extractProtocol(markdown, { taskID: "ts-b54507" })).toBe("a\nb")
    },
  )
})

test.each(ROLES)(
  promised("compaction.C4", "the protocol has a short built-in text for a %s whose prompt has none"),
  (role) => {
    const text = builtInProtocol(role, { taskID: "ts-b54507" })
    expect(text).toContain('prog log ts-b54507 "Blocked:')
    expect(text).not.toContain("{{")
    expect(text.length).toBeLessThan(700)
  },
)
