import { execFileSync } from "node:child_process"
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs"
import files from "node:fs/promises"
import { syncBuiltinESMExports } from "node:module"
import { dirname, join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import {
  decodeText,
  isSecretPath,
  MAX_FILE_BYTES,
  readProjectFile,
} from "../../../.opencode/baton/host/project-file.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/temporary-folder.ts"

/** Simulates another process: runs `act` right after a call of the file system while a file is being read. */
const rightAfter = (call: "stat" | "open", act: () => void): void => {
  const real: (...args: never[]) => Promise<unknown> = files[call]
  const put = (replacement: typeof real): void => {
    Object.assign(files, { [call]: replacement })
    syncBuiltinESMExports()
  }
  put(async (...args) => {
    const answer = await real(...args)
    act()
    return answer
  })
  onTestFinished(() => put(real))
}

const write = (root: string, path: string, content: string | Uint8Array = "a\nb\n"): string => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), content)
  return join(root, path)
}
/** A project folder with a file outside of it. */
const project = (): { root: string; base: string; outside: string } => {
  const folder = temporaryFolder()
  const root = join(folder, "project")
  mkdirSync(root)
  return { root, base: root, outside: write(folder, "outside.ts", "outside") }
}

const NOBODY = 65_534

describe("a file of the project", () => {
  test(
    promised("handoff.C3", "is read, whether named from the base, from the root or through a link inside"),
    async () => {
      const { root } = project()
      const realPath = write(root, "src/a.ts")
      symlinkSync("src/a.ts", join(root, "link.ts"))
      symlinkSync("src", join(root, "folder"))
      const expected = { kind: "file", path: "a.ts", realPath, text: "a\nb\n", encoding: "UTF-8" }
      for (const path of [
        "a.ts",
        "./a.ts",
        "../src/a.ts",
        realPath,
        "../link.ts",
        "../folder/a.ts",
        "../../project/src/a.ts",
      ])
        expect(await readProjectFile({ root, base: join(root, "src") }, path)).toEqual(expected)
    },
  )

  test(promised("handoff.C3", "is named from the base, with `/`"), async () => {
    const { root } = project()
    mkdirSync(join(root, "docs"))
    write(root, "src/a.ts")
    const read = (base: string) => readProjectFile({ root, base: join(root, base) }, join(root, "src/a.ts"))
    expect(await read("")).toMatchObject({ path: "src/a.ts" })
    expect(await read("docs")).toMatchObject({ path: "../src/a.ts" })
  })

  test.each([
    "a\nb.ts",
    " a ",
    'quo"te',
    "back\\slash.ts",
    "..a.ts",
    "...",
    "日本.ts",
    "a`b`.ts",
    "-rf",
    "a.environment.ts",
  ])(promised(["handoff.C3", "handoff.E2"], "may be called %j"), async (name) => {
    const { root, base } = project()
    write(root, name)
    expect(await readProjectFile({ root, base }, name)).toMatchObject({ kind: "file", path: name })
  })

  test(promised("handoff.C3", "may be empty, or as large as the limit"), async () => {
    const { root, base } = project()
    write(root, "empty.ts", "")
    write(root, "limit.ts", "x".repeat(MAX_FILE_BYTES))
    expect(await readProjectFile({ root, base }, "empty.ts")).toMatchObject({ kind: "file", text: "" })
    expect(await readProjectFile({ root, base }, "limit.ts")).toMatchObject({ text: "x".repeat(MAX_FILE_BYTES) })
  })
})

const REFUSED: readonly (readonly [
  what: string,
  reason: string,
  prepare: (root: string, outside: string) => string,
])[] = [
  ["that is missing", "there is no such file", () => "a.ts"],
  ["in a folder that is a file", "there is no such file", (root) => `${write(root, "a.ts")}/b.ts`],
  ["behind `..`", "it lies outside the project", () => "../outside.ts"],
  ["at an absolute path elsewhere", "it lies outside the project", (_root, outside) => outside],
  [
    "behind a link out",
    "it lies outside the project",
    (root, outside) => {
      symlinkSync(outside, join(root, "a.ts"))
      return "a.ts"
    },
  ],
  [
    "in a folder that is a link out",
    "it lies outside the project",
    (root, outside) => {
      symlinkSync(dirname(outside), join(root, "folder"))
      return "folder/outside.ts"
    },
  ],
  [
    "in a folder whose name begins as the project's",
    "it lies outside the project",
    (root) => write(`${root}-2`, "a.ts"),
  ],
  [
    "behind a link to a device",
    "it lies outside the project",
    (root) => {
      symlinkSync("/dev/zero", join(root, "a.ts"))
      return "a.ts"
    },
  ],
  [
    "behind a link that leads nowhere",
    "there is no such file",
    (root) => {
      symlinkSync("nowhere", join(root, "a.ts"))
      return "a.ts"
    },
  ],
  [
    "behind links in a circle",
    "its links lead in a circle",
    (root) => {
      symlinkSync("b.ts", join(root, "a.ts"))
      symlinkSync("a.ts", join(root, "b.ts"))
      return "a.ts"
    },
  ],
  [
    "that is a named pipe",
    "it is no regular file",
    (root) => {
      execFileSync("mkfifo", [join(root, "a.ts")])
      return "a.ts"
    },
  ],
  [
    "that is a folder",
    "it is a folder",
    (root) => {
      mkdirSync(join(root, "a.ts"))
      return "a.ts"
    },
  ],
  ["that is the project itself", "it is a folder", () => "."],
  [
    "of 5 GB",
    "it is larger than 2 MB (5368709120 bytes)",
    (root) => {
      truncateSync(write(root, "a.ts"), 5 * 1024 ** 3)
      return "a.ts"
    },
  ],
  [
    "one byte too large",
    `it is larger than 2 MB (${MAX_FILE_BYTES + 1} bytes)`,
    (root) => write(root, "a.ts", "x".repeat(MAX_FILE_BYTES + 1)),
  ],
  ["with a null byte in its name", "its name has a null byte", () => "a\0.ts"],
  ["with too long a name", "its name is too long", () => "a".repeat(300)],
  ["with secrets", "it may hold secrets", (root) => write(root, "config/.env")],
  [
    "behind a link called like secrets",
    "it may hold secrets",
    (root) => {
      write(root, "a.ts")
      symlinkSync("a.ts", join(root, ".env"))
      return ".env"
    },
  ],
  [
    "with secrets behind a harmless link",
    "it may hold secrets",
    (root) => {
      write(root, ".env")
      symlinkSync(".env", join(root, "a.ts"))
      return "a.ts"
    },
  ],
  ["of git's own", "it may hold secrets", (root) => write(root, ".git/config")],
  ["with a null byte", "it is binary", (root) => write(root, "a.ts", "a\0b")],
  ["with a null byte far behind", "it is binary", (root) => write(root, "a.ts", `${"a".repeat(100_000)}\0`)],
  ["with too much that is not printable", "it is binary", (root) => write(root, "a.ts", "\u0001\u0002ab")],
  ["that is binary by its extension", "it is binary", (root) => write(root, "a.PNG", "text")],
]

describe("a file that is not read", () => {
  test.each(REFUSED)(
    promised(["handoff.C3", "handoff.B4", "handoff.E2"], "is one %s: %s"),
    async (_what, reason, prepare) => {
      const { root, base, outside } = project()
      const path = prepare(root, outside)
      const kind = reason === "there is no such file" ? "missing" : "refused"
      expect(await readProjectFile({ root, base }, path)).toEqual({ kind, path, reason })
    },
  )

  test(promised("handoff.B4", "is one that may not be read"), async () => {
    const { root, base } = project()
    chmodSync(write(root, "a.ts"), 0)
    const isRoot = process.getuid?.() === 0
    // Root may read everything, so another user has to read.
    if (isRoot) {
      chmodSync(root, 0o755)
      process.seteuid?.(NOBODY)
    }
    const read = await readProjectFile({ root, base }, "a.ts").finally(() => isRoot && process.seteuid?.(0))
    expect(read).toMatchObject({ kind: "refused", reason: "it may not be read" })
  })

  test(promised("handoff.C3", "is one in a folder for keys, though the base lies there too"), async () => {
    const { root } = project()
    write(root, ".ssh/a")
    symlinkSync(".ssh", join(root, "link"))
    for (const [base, path] of [
      [".ssh", "a"],
      [".ssh", "../link/a"],
      ["", "link/a"],
    ] as const)
      expect(await readProjectFile({ root, base: join(root, base) }, path)).toMatchObject({
        reason: "it may hold secrets",
      })
  })

  test(promised("handoff.C3", "is not taken for a secret for a folder above the project"), async () => {
    const root = join(temporaryFolder(), ".ssh", "x.env.d", "project")
    write(root, "a.ts")
    expect(await readProjectFile({ root, base: root }, join(root, "a.ts"))).toMatchObject({
      kind: "file",
      path: "a.ts",
    })
  })
})

describe("a file that changes while it is read", () => {
  test(
    promised("handoff.E2", "is refused when a named pipe takes its place, and nothing waits for a writer"),
    async () => {
      const { root, base } = project()
      const path = write(root, "a.ts")
      rightAfter("stat", () => {
        rmSync(path)
        execFileSync("mkfifo", [path])
      })
      expect(await readProjectFile({ root, base }, "a.ts")).toMatchObject({
        reason: "it was replaced while it was opened",
      })
    },
  )

  test(promised(["handoff.C3", "handoff.E2"], "is refused when a link out takes its place"), async () => {
    const { root, base, outside } = project()
    const path = write(root, "a.ts")
    rightAfter("stat", () => {
      rmSync(path)
      symlinkSync(outside, path)
    })
    expect(await readProjectFile({ root, base }, "a.ts")).toMatchObject({ kind: "refused" })
  })

  test(promised(["handoff.C3", "handoff.E2"], "is refused when another file takes its place"), async () => {
    const { root, base, outside } = project()
    const path = write(root, "a.ts")
    rightAfter("stat", () => renameSync(outside, path))
    expect(await readProjectFile({ root, base }, "a.ts")).toMatchObject({
      reason: "it was replaced while it was opened",
    })
  })

  test(promised("handoff.E2", "is missing when it is deleted"), async () => {
    const { root, base } = project()
    const path = write(root, "a.ts")
    rightAfter("stat", () => rmSync(path))
    expect(await readProjectFile({ root, base }, "a.ts")).toMatchObject({ kind: "missing" })
  })

  test(promised("handoff.E2", "is read as far as it reaches when it shrinks"), async () => {
    const { root, base } = project()
    const path = write(root, "a.ts", "x".repeat(200_000))
    rightAfter("open", () => truncateSync(path, 70_000))
    expect(await readProjectFile({ root, base }, "a.ts")).toMatchObject({ kind: "file", text: "x".repeat(70_000) })
  })

  test(promised(["handoff.C3", "handoff.E2"], "is refused when it grows over the limit"), async () => {
    const { root, base } = project()
    const path = write(root, "a.ts")
    rightAfter("open", () => truncateSync(path, 5 * 1024 ** 3))
    expect(await readProjectFile({ root, base }, "a.ts")).toMatchObject({ reason: "it is larger than 2 MB" })
  })
})

describe("a secret", () => {
  test.each([
    ...[
      ".env",
      ".ENV",
      "prod.env",
      ".env.local",
      ".env.example.local",
      "a/.env",
      "a\\.env",
      "app.env.ts",
      ".env.d/prod",
    ],
    ...["key.pem", "a/server.KEY", "id_rsa", ".ssh/id_ed25519", ".ssh/config", "x.p12", "x.kdbx"],
    ...[
      ".npmrc",
      "a/.netrc",
      ".git-credentials",
      ".envrc",
      ".git/config",
      "a/.git/x/y",
      ".GIT/config",
      ".aws/credentials",
    ],
  ])(promised("handoff.C3", "is held by %s"), (path) => {
    expect(isSecretPath(path)).toBe(true)
  })

  test.each([
    ...[
      ".env.example",
      "a/.env.sample",
      ".env.template",
      ".env.local.example",
      "env.ts",
      "src/env.d.ts",
      "env",
      "environment.ts",
    ],
    ...[
      "vite-env.d.ts",
      ".environment",
      ".env/bin/activate",
      ".gitignore",
      ".github/a.yml",
      ".git",
      "id_rsa.pub",
      "keys.ts",
      "a.pem.ts",
    ],
  ])(promised("handoff.C3", "is not held by %s"), (path) => {
    expect(isSecretPath(path)).toBe(false)
  })
})

describe("a file's bytes", () => {
  const utf16 = (text: string): Buffer => Buffer.from(`\ufeff${text}`, "utf16le")
  test.each([
    ["UTF-8", "UTF-8", Buffer.from("aé漢🎉"), "aé漢🎉"],
    ["UTF-8 with a mark", "UTF-8", Buffer.from("\ufeffaé"), "aé"],
    ["UTF-16, little end first", "UTF-16", utf16("aé漢🎉\n"), "aé漢🎉\n"],
    ["UTF-16, big end first", "UTF-16", utf16("aé漢🎉\n").swap16(), "aé漢🎉\n"],
    ["UTF-16 cut in a character", "UTF-16", utf16("ab").subarray(0, 5), "a\ufffd"],
    ["Latin-1", "Latin-1", Buffer.from("café ÿ", "latin1"), "café ÿ"],
    ["control characters up to 30 %", "UTF-8", Buffer.from("\u0001\u0002\u0003abcdefg"), "\u0001\u0002\u0003abcdefg"],
    ["line ends, tabs and form feeds", "UTF-8", Buffer.from("\t\n\v\f\r"), "\t\n\v\f\r"],
    [
      "control characters behind the first 4,096 bytes",
      "UTF-8",
      Buffer.from("a".repeat(4_096) + "\u0001".repeat(5_000)),
      "a".repeat(4_096) + "\u0001".repeat(5_000),
    ],
    ["nothing", "UTF-8", Buffer.from(""), ""],
  ])(promised("handoff.C3", "are text: %s"), (_what, encoding, bytes, text) => {
    expect(decodeText(bytes)).toEqual({ kind: "text", text, encoding })
  })

  test.each([
    ["a null byte", Buffer.from("a\0")],
    ["UTF-16 without a mark", Buffer.from("ab", "utf16le")],
    ["UTF-32", Buffer.from([0xff, 0xfe, 0, 0, 0x61, 0, 0, 0])],
    ["a mark of UTF-16 and null characters", utf16("a\0b")],
    ["a mark of UTF-16 and control characters", utf16("\u0001\u0002a")],
    ["more than 30 % control characters", Buffer.from("\u0001\u0002\u0003\u0004abcdef")],
  ])(promised("handoff.C3", "are binary: %s"), (_what, bytes) => {
    expect(decodeText(bytes)).toEqual({ kind: "binary" })
  })
})
