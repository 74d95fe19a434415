import { execFileSync } from "node:child_process"
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs"
import files from "node:fs/promises"
import { syncBuiltinESMExports } from "node:module"
import { dirname, join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import * as projectFile from "../../../.opencode/baton/host/project-file.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"

const { decodeText, isSecretPath, MAX_FILE_BYTES: MAX, readProjectFile } = projectFile

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

/** @returns the link's name, relative to the root */
const link = (root: string, target: string, name = "a.ts"): string => {
  symlinkSync(target, join(root, name))
  return name
}

const makePipe = (path: string): string => {
  execFileSync("mkfifo", [path])
  return path
}

const grow = (path: string): string => {
  truncateSync(path, 5 * 1024 ** 3)
  return path
}

/** A project folder with a file `../outside.ts`. */
const project = () => {
  const folder = temporaryFolder()
  const root = join(folder, "project")
  mkdirSync(root)
  const read = (path: string, base = "") => readProjectFile({ root, base: join(root, base) }, path)
  return { root, read, outside: write(folder, "outside.ts", "outside") }
}

const NOBODY = 65_534

describe("a file of the project", () => {
  const SAME = ["a.ts", "./a.ts", "../src/a.ts", "../link.ts", "../folder/a.ts", "../../project/src/a.ts"]
  test.each(SAME)(
    promised("handoff.C3", "a file of the project is read from the base, the root or a link inside: %s"),
    async (path) => {
      const { root, read } = project()
      const realPath = write(root, "src/a.ts")
      link(root, "src/a.ts", "link.ts")
      link(root, "src", "folder")
      const expected = { kind: "file", path: "a.ts", realPath, text: "a\nb\n", encoding: "UTF-8" }
      expect(await read(path, "src")).toEqual(expected)
    },
  )

  test(promised("handoff.C3", "a file of the project is named from the base, with `/`"), async () => {
    const { root, read } = project()
    mkdirSync(join(root, "docs"))
    const path = write(root, "src/a.ts")
    expect(await read(path)).toMatchObject({ path: "src/a.ts" })
    expect(await read(path, "docs")).toMatchObject({ path: "../src/a.ts" })
  })

  const NAMES = ["a\nb.ts", " a ", 'quo"te', "back\\slash.ts", "..a.ts", "...", "日本.ts", "a.environment.ts"]
  const FILES = [...NAMES.map((name) => [name, "a\n"] as const), ["a", ""], ["b", "x".repeat(MAX)]] as const
  test.each(FILES)(
    promised(["handoff.C3", "handoff.E2"], "a file of the project may be called %j, of any size"),
    async (name, text) => {
      const { root, read } = project()
      write(root, name, text)
      expect(await read(name)).toMatchObject({ kind: "file", path: name, text })
    },
  )
})

const MISSING = "there is no such file"
const OUTSIDE = "it lies outside the project"
const SECRET = "it may hold secrets"
const REPLACED = "it was replaced while it was opened"

const REFUSED: readonly (readonly [what: string, reason: string, prepare: (root: string) => string])[] = [
  ["that is missing", MISSING, () => "a.ts"],
  ["in a folder that is a file", MISSING, (root) => `${write(root, "a.ts")}/b.ts`],
  ["behind `..`", OUTSIDE, () => "../outside.ts"],
  ["at an absolute path elsewhere", OUTSIDE, (root) => join(root, "../outside.ts")],
  ["behind a link out", OUTSIDE, (root) => link(root, "../outside.ts")],
  ["in a folder that is a link out", OUTSIDE, (root) => `${link(root, "..")}/outside.ts`],
  ["in a folder whose name begins as the project's", OUTSIDE, (root) => write(`${root}-2`, "a.ts")],
  ["behind a link to a device", OUTSIDE, (root) => link(root, "/dev/zero")],
  ["behind a link that leads nowhere", MISSING, (root) => link(root, "nowhere")],
  ["behind links in a circle", "its links lead in a circle", (root) => link(root, link(root, "a.ts", "b.ts"))],
  ["that is a named pipe", "it is no regular file", (root) => makePipe(join(root, "a.ts"))],
  ["that is a folder", "it is a folder", (root) => dirname(write(root, "src/a.ts"))],
  ["that is the project itself", "it is a folder", () => "."],
  ["of 5 GB", "it is larger than 2 MB (5368709120 bytes)", (root) => grow(write(root, "a.ts"))],
  ["a byte too large", `it is larger than 2 MB (${MAX + 1} bytes)`, (root) => write(root, "a.ts", "x".repeat(MAX + 1))],
  ["with a null byte in its name", "its name has a null byte", () => "a\0.ts"],
  ["with too long a name", "its name is too long", () => "a".repeat(300)],
  ["with secrets", SECRET, (root) => write(root, "config/.env")],
  ["behind a link called like secrets", SECRET, (root) => link(root, write(root, "a.ts"), ".env")],
  ["with secrets behind a harmless link", SECRET, (root) => link(root, write(root, ".env"))],
  ["with a null byte far behind", "it is binary", (root) => write(root, "a.ts", `${"a".repeat(100_000)}\0`)],
  ["that is binary by its extension", "it is binary", (root) => write(root, "a.PNG", "text")],
]

describe("a file that is not read", () => {
  test.each(REFUSED)(
    promised(["handoff.C3", "handoff.B4", "handoff.E2"], "a file that is not read is one %s: %s"),
    async (_, reason, make) => {
      const { root, read } = project()
      const path = make(root)
      expect(await read(path)).toMatchObject({ kind: reason === MISSING ? "missing" : "refused", path, reason })
    },
  )

  test(promised("handoff.B4", "a file that is not read is one that may not be read"), async () => {
    const { root, read } = project()
    chmodSync(write(root, "a.ts"), 0)
    const isRoot = process.getuid?.() === 0
    // Root may read everything, so another user has to read.
    if (isRoot) {
      chmodSync(root, 0o755)
      process.seteuid?.(NOBODY)
    }
    const answer = await read("a.ts").finally(() => isRoot && process.seteuid?.(0))
    expect(answer).toMatchObject({ kind: "refused", reason: "it may not be read" })
  })

  test.each([
    [".ssh", "a"],
    [".ssh", "../link/a"],
    ["", "link/a"],
  ])(
    promised("handoff.C3", "a file that is not read is one in a folder for keys, with the base %j: %s"),
    async (base, path) => {
      const { root, read } = project()
      write(root, ".ssh/a")
      link(root, ".ssh", "link")
      expect(await read(path, base)).toMatchObject({ reason: SECRET })
    },
  )

  test(
    promised("handoff.C3", "a file that is not read is not taken for a secret for a folder above the project"),
    async () => {
      const root = join(temporaryFolder(), ".ssh", "x.env.d", "project")
      const path = write(root, "a.ts")
      expect(await readProjectFile({ root, base: root }, path)).toMatchObject({ kind: "file", path: "a.ts" })
    },
  )
})

type Act = (path: string, outside: string) => void
const becomesPipe: Act = (path) => [rmSync(path), makePipe(path)]
const becomesLink: Act = (path, outside) => [rmSync(path), symlinkSync(outside, path)]
const shrinks: Act = (path) => truncateSync(path, 70_000)
test.each<[what: string, call: "stat" | "open", act: Act, expected: object]>([
  ["is refused when a named pipe takes its place", "stat", becomesPipe, { reason: REPLACED }],
  ["is refused when a link out takes its place", "stat", becomesLink, { kind: "refused" }],
  ["is refused when a file takes its place", "stat", (path, other) => renameSync(other, path), { reason: REPLACED }],
  ["is missing when it is deleted", "stat", (path) => rmSync(path), { kind: "missing" }],
  ["is read as far as it reaches when it shrinks", "open", shrinks, { kind: "file", text: "x".repeat(70_000) }],
  ["is refused when it grows over the limit", "open", (path) => grow(path), { reason: "it is larger than 2 MB" }],
])(promised(["handoff.C3", "handoff.E2"], "a file that changes %s"), async (_what, call, act, expected) => {
  const { root, read, outside } = project()
  const path = write(root, "a.ts", "x".repeat(200_000))
  rightAfter(call, () => act(path, outside))
  expect(await read("a.ts")).toMatchObject(expected)
})

/** Paths between blanks. */
const split = (paths: string): string[] => paths.trim().split(/\s+/)

const SECRETS = split(`
  .env .ENV prod.env .env.local .env.example.local a/.env a\\.env app.env.ts .env.d/prod
  key.pem a/server.KEY id_rsa .ssh/id_ed25519 .ssh/config x.p12 x.kdbx .npmrc a/.netrc .git-credentials .envrc
  .git/config a/.git/x/y .GIT/config .aws/credentials
  id_ed25519_sk id_rsa.bak .docker/config.json home/.kube/config .vault-token service-account.json my-service_account.json
  terraform.tfstate terraform.tfstate.backup .config/gh/hosts.yml .cargo/credentials.toml .cargo\\credentials AuthKey.p8
  credentials.toml credentials.json client_secret_12.json config/secrets.yml secrets.prod.yaml .azure/accessTokens.json
  app-firebase-adminsdk-x1.json application_default_credentials.json prod.auto.tfvars terraform.tfvars .pg_service.conf .s3cfg
  wp-config.php local.settings.json kubeconfig .gem/credentials home/.config/gcloud/access_tokens.db vault-password.txt
`)

const HARMLESS = split(`
  .env.example a/.env.sample .env.template .env.local.example env.ts src/env.d.ts env environment.ts vite-env.d.ts
  .environment .env/bin/activate .gitignore .github/a.yml .git id_rsa.pub keys.ts a.pem.ts
  id_ed25519_sk.pub config.json .docker/Dockerfile hosts.yml credentials.ts secrets.test.ts secretary.json tfstate.ts service-account.ts id_rsa_test.go
`)

describe("a secret", () => {
  test.each(SECRETS)(promised("handoff.C3", "a secret is held by %s"), (path) => expect(isSecretPath(path)).toBe(true))
  test.each(HARMLESS)(promised("handoff.C3", "a secret is not held by %s"), (path) =>
    expect(isSecretPath(path)).toBe(false),
  )
})

describe("a file's bytes", () => {
  const TEXT_THEN_CONTROL = "a".repeat(4_096) + "\u0001".repeat(5_000)
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
    ["control characters behind the first 4,096 bytes", "UTF-8", Buffer.from(TEXT_THEN_CONTROL), TEXT_THEN_CONTROL],
    ["nothing", "UTF-8", Buffer.from(""), ""],
  ])(promised("handoff.C3", "a file's bytes are text: %s"), (_what, encoding, bytes, text) => {
    expect(decodeText(bytes)).toEqual({ kind: "text", text, encoding })
  })

  test.each([
    ["a null byte", Buffer.from("a\0")],
    ["UTF-16 without a mark", Buffer.from("ab", "utf16le")],
    ["UTF-32", Buffer.from([0xff, 0xfe, 0, 0, 0x61, 0, 0, 0])],
    ["a mark of UTF-16 and null characters", utf16("a\0b")],
    ["a mark of UTF-16 and control characters", utf16("\u0001\u0002a")],
    ["more than 30 % control characters", Buffer.from("\u0001\u0002\u0003\u0004abcdef")],
  ])(promised("handoff.C3", "a file's bytes are binary: %s"), (_what, bytes) =>
    expect(decodeText(bytes)).toEqual({ kind: "binary" }),
  )
})
