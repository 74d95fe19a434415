import { describe, expect, test } from "vitest"
import {
  type Place,
  pathInWorktree,
  projectText,
  redirectCall,
  redirectedDirectory,
  redirectText,
} from "../../../.opencode/baton/pass-over/sandbox/paths.ts"
import { promised } from "../../requirements.ts"

const COPY = "/home/ann/proj/.opencode/state/pass-over/p1/copy"
const place: Place = {
  directory: "/home/ann/proj/pkg",
  worktree: "/home/ann/proj",
  spellings: ["/real/proj"],
  copy: COPY,
}

const argsOf = (tool: string, args: Record<string, unknown>): unknown => {
  const found = redirectCall(tool, args, place)
  return found.kind === "redirected" ? found.args : found.kind
}

describe("a child's tool calls", () => {
  test(promised("pass-over.B2", "are moved to the copy, with relative and absolute paths in every spelling"), () => {
    expect(redirectedDirectory(place)).toBe(`${COPY}/pkg`)
    for (const [path, moved] of [
      ["src/a.ts", `${COPY}/pkg/src/a.ts`],
      ["../a.ts", `${COPY}/a.ts`],
      ["/home/ann/proj/a.ts", `${COPY}/a.ts`],
      ["/real/proj/a.ts", `${COPY}/a.ts`],
      [`${COPY}/a.ts`, `${COPY}/a.ts`],
      ["/home/ann/proj-two/a.ts", "/home/ann/proj-two/a.ts"],
      ["../../../etc/hosts", "/home/etc/hosts"],
    ]) {
      for (const tool of ["read", "write", "edit", "lsp"]) {
        expect(argsOf(tool, { filePath: path, content: "kept" }), path).toEqual({ filePath: moved })
      }
    }
    expect(argsOf("multiedit", { filePath: "a", edits: [{ filePath: "b", oldString: "x" }, "odd"] })).toEqual({
      filePath: `${COPY}/pkg/a`,
      edits: [{ filePath: `${COPY}/pkg/b`, oldString: "x" }, "odd"],
    })
    for (const tool of ["glob", "grep", "list"]) {
      expect(argsOf(tool, { pattern: "*" })).toEqual({ path: `${COPY}/pkg` })
      expect(argsOf(tool, { path: "/home/ann/proj/src" })).toEqual({ path: `${COPY}/src` })
    }
  })

  test("are moved in a patch by its headers alone, also with line ends of Windows", () => {
    const lines = [
      ["*** Begin Patch"],
      ["*** Add File: new.ts", `*** Add File: ${COPY}/pkg/new.ts`],
      ["+*** Add File: not-a-header.ts"],
      ["*** Update File: /home/ann/proj/a.ts\r", `*** Update File: ${COPY}/a.ts\r`],
      ["*** Move to: b.ts", `*** Move to: ${COPY}/pkg/b.ts`],
      [" *** Delete File: context.ts"],
      ["*** Delete File: gone.ts", `*** Delete File: ${COPY}/pkg/gone.ts`],
      ["*** End Patch"],
    ]
    const patchText = lines.map(([line]) => line).join("\n")
    const moved = lines.map(([line, elsewhere = line]) => elsewhere).join("\n")
    expect(argsOf("apply_patch", { patchText })).toEqual({ patchText: moved })
  })

  test("are moved in a shell by its working directory and by the worktree's path in the command", () => {
    expect(argsOf("bash", { command: "ls", description: "x" })).toEqual({ command: "ls", workdir: `${COPY}/pkg` })
    expect(argsOf("bash", { command: "cd /home/ann/proj && ls", workdir: "/home/ann/proj" })).toEqual({
      command: `cd ${COPY} && ls`,
      workdir: COPY,
    })
  })

  test("that touch no files pass, batch is refused, and others are nobody's to judge here", () => {
    expect(argsOf("todowrite", { todos: [] })).toEqual({})
    expect(argsOf("batch", {})).toBe("refused")
    expect(argsOf("weather_lookup", {})).toBe("unknown")
  })
})

describe("text with paths", () => {
  test("has the worktree's path made the copy's where it is a whole one, once", () => {
    for (const [text, moved] of [
      ["Working directory: /home/ann/proj", `Working directory: ${COPY}`],
      ['cat "/home/ann/proj/a b.txt"; rm /home/ann/proj', `cat "${COPY}/a b.txt"; rm ${COPY}`],
      ["in /home/ann/proj. Then", `in ${COPY}. Then`],
      ["/home/ann/project/a /home/ann/proj-2 x/home/ann/proj", "/home/ann/project/a /home/ann/proj-2 x/home/ann/proj"],
      ["cat </real/proj/a", `cat <${COPY}/a`],
      [`cat ${COPY}/a`, `cat ${COPY}/a`],
    ] as const) {
      expect(redirectText(text, place)).toBe(moved)
      expect(redirectText(moved, place)).toBe(moved)
    }
  })

  test("has the copy's path taken off for whoever reads it in the project", () => {
    expect(projectText(`${COPY}/src/a.ts:3 and ${COPY} and ${COPY}-two`, place.copy)).toBe(
      `src/a.ts:3 and . and ${COPY}-two`,
    )
    expect(pathInWorktree(`${COPY}/src/a.ts`, place)).toBe("src/a.ts")
    expect(pathInWorktree("b.ts", place)).toBe("pkg/b.ts")
    expect(pathInWorktree("/etc/hosts", place)).toBeUndefined()
  })
})
