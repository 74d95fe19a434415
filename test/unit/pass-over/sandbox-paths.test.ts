import { describe, expect, test } from "vitest"
import {
  type SandboxPaths,
  sandboxDirectory,
  toProjectPath,
  toProjectText,
  toSandboxArgs,
  toSandboxText,
} from "../../../.opencode/baton/pass-over/sandbox/paths.ts"
import { promised } from "../../requirements.ts"

const SANDBOX = "/home/ann/proj/.opencode/state/pass-over/p1/copy"
const paths: SandboxPaths = {
  directory: "/home/ann/proj/pkg",
  worktree: "/home/ann/proj",
  spellings: ["/real/proj"],
  root: SANDBOX,
}

const argsOf = (tool: string, args: Record<string, unknown>): unknown => {
  const found = toSandboxArgs(tool, args, paths)
  return found.kind === "go" ? found.changes : found.kind
}

describe("a child's tool calls", () => {
  test(
    promised(
      "pass-over.B2",
      "a child's tool calls are moved to the sandbox, with relative and absolute paths in every spelling",
    ),
    () => {
      expect(sandboxDirectory(paths)).toBe(`${SANDBOX}/pkg`)
      for (const [path, moved] of [
        ["src/a.ts", `${SANDBOX}/pkg/src/a.ts`],
        ["../a.ts", `${SANDBOX}/a.ts`],
        ["/home/ann/proj/a.ts", `${SANDBOX}/a.ts`],
        ["/real/proj/a.ts", `${SANDBOX}/a.ts`],
        [`${SANDBOX}/a.ts`, `${SANDBOX}/a.ts`],
        ["/home/ann/proj-two/a.ts", "/home/ann/proj-two/a.ts"],
        ["../../../etc/hosts", "/home/etc/hosts"],
      ]) {
        for (const tool of ["read", "write", "edit", "lsp"]) {
          expect(argsOf(tool, { filePath: path, content: "kept" }), path).toEqual({ filePath: moved })
        }
      }
      expect(argsOf("multiedit", { filePath: "a", edits: [{ filePath: "b", oldString: "x" }, "odd"] })).toEqual({
        filePath: `${SANDBOX}/pkg/a`,
        edits: [{ filePath: `${SANDBOX}/pkg/b`, oldString: "x" }, "odd"],
      })
      for (const tool of ["glob", "grep", "list"]) {
        expect(argsOf(tool, { pattern: "*" })).toEqual({ path: `${SANDBOX}/pkg` })
        expect(argsOf(tool, { path: "/home/ann/proj/src" })).toEqual({ path: `${SANDBOX}/src` })
      }
    },
  )

  test("a child's tool calls are moved in a patch by its headers alone, also with line ends of Windows", () => {
    const lines = [
      ["*** Begin Patch"],
      ["*** Add File: new.ts", `*** Add File: ${SANDBOX}/pkg/new.ts`],
      ["+*** Add File: not-a-header.ts"],
      ["*** Update File: /home/ann/proj/a.ts\r", `*** Update File: ${SANDBOX}/a.ts\r`],
      ["*** Move to: b.ts", `*** Move to: ${SANDBOX}/pkg/b.ts`],
      [" *** Delete File: context.ts"],
      ["*** Delete File: gone.ts", `*** Delete File: ${SANDBOX}/pkg/gone.ts`],
      ["*** Add File:/home/ann/proj/tight.ts", `*** Add File:${SANDBOX}/tight.ts`],
      ["*** Add File:\t /home/ann/proj/wide.ts \r", `*** Add File:\t ${SANDBOX}/wide.ts \r`],
      ["*** Add File:\u2028/home/ann/proj/odd.ts", `*** Add File:\u2028${SANDBOX}/odd.ts`],
      ["*** End Patch"],
    ]
    const patchText = lines.map(([line]) => line).join("\n")
    const moved = lines.map(([line, elsewhere = line]) => elsewhere).join("\n")
    expect(argsOf("apply_patch", { patchText })).toEqual({ patchText: moved })
  })

  test("a child's tool calls are moved in a shell by its working directory and by the worktree's path in the command", () => {
    expect(argsOf("bash", { command: "ls", description: "x" })).toEqual({ command: "ls", workdir: `${SANDBOX}/pkg` })
    expect(argsOf("bash", { command: "cd /home/ann/proj && ls", workdir: "/home/ann/proj" })).toEqual({
      command: `cd ${SANDBOX} && ls`,
      workdir: SANDBOX,
    })
  })

  test("a child's tool calls that touch no files, or are of a plugin, stay as they are, and batch is refused", () => {
    for (const tool of ["todowrite", "weather_lookup"]) expect(argsOf(tool, { text: "/home/ann/proj" })).toEqual({})
    expect(argsOf("batch", {})).toBe("refused")
  })
})

describe("text with paths", () => {
  test("text with paths has the worktree's path made the sandbox's where it is a whole one, once", () => {
    for (const [text, moved] of [
      ["Working directory: /home/ann/proj", `Working directory: ${SANDBOX}`],
      ['cat "/home/ann/proj/a b.txt"; rm /home/ann/proj', `cat "${SANDBOX}/a b.txt"; rm ${SANDBOX}`],
      ["in /home/ann/proj. Then", `in ${SANDBOX}. Then`],
      ["/home/ann/project/a /home/ann/proj-2 x/home/ann/proj", "/home/ann/project/a /home/ann/proj-2 x/home/ann/proj"],
      ["cat </real/proj/a", `cat <${SANDBOX}/a`],
      [`cat ${SANDBOX}/a`, `cat ${SANDBOX}/a`],
    ] as const) {
      expect(toSandboxText(text, paths)).toBe(moved)
      expect(toSandboxText(moved, paths)).toBe(moved)
    }
  })

  test("text with paths has the sandbox's path taken off for a reader in the project", () => {
    expect(toProjectText(`${SANDBOX}/src/a.ts:3 and ${SANDBOX} and ${SANDBOX}-two`, paths.root)).toBe(
      `src/a.ts:3 and . and ${SANDBOX}-two`,
    )
    expect(toProjectPath(`${SANDBOX}/src/a.ts`, paths)).toBe("src/a.ts")
    expect(toProjectPath("b.ts", paths)).toBe("pkg/b.ts")
    expect(toProjectPath("/etc/hosts", paths)).toBeUndefined()
  })
})
