import { execFileSync, spawn } from "node:child_process"
import { chmodSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { onTestFinished } from "vitest"
import { createProcessRunner } from "../../../.opencode/baton/host/process.ts"
import type { StateFolder } from "../../../.opencode/baton/host/state.ts"
import type { Sandbox } from "../../../.opencode/baton/pass-over/sandbox/sandbox.ts"
import { snapshotTree } from "../files/folder-tree.ts"
import { endWithTest, temporaryFolder } from "../files/with-test.ts"
import { createRecordedLog } from "../recorded-log.ts"
import { type OpenCodeBinary, REPOSITORY } from "./opencode-binary.ts"
import { idOf, openSandboxes, type TestSandboxes } from "./pass-sandboxes.ts"
import { GIT_IDENTITY } from "./test-project.ts"

export type Files = Readonly<Record<string, string | Buffer>>

export const writeFiles = (root: string, files: Files): void => {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
}

export const gitIn = (folder: string, ...args: string[]): string =>
  execFileSync("git", ["-C", folder, ...GIT_IDENTITY, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })

export const readIn = (folder: string, path: string): string => readFileSync(join(folder, path), "utf8")

/** Reads a content that a pass stored. @param hash such as `new_hash` of a changed file */
export const storedText = (root: string, name: string, hash: string | null | undefined): string | null => {
  const store = passPlace(root, name, "files", "store")
  return hash == null ? null : gitIn(root, `--git-dir=${store}`, "cat-file", "blob", hash)
}

export const isExecutable = (path: string): boolean => (lstatSync(path).mode & 0o100) !== 0

/** All files of a project, including git's, without the bundle's state. */
export const projectTree = (root: string): Record<string, string> =>
  Object.fromEntries(Object.entries(snapshotTree(root)).filter(([path]) => !path.includes(".opencode/state")))

/** Opens the passes of a project as another process would. */
export const connectSandboxes = (
  root: string,
  directory = root,
  options: { isNoted?: () => boolean; freeSpace?: () => number; state?: StateFolder; lockWaitMs?: number } = {},
): TestSandboxes => {
  const run = createProcessRunner({ shell: undefined })
  const passes = openSandboxes(root, { ...options, directory, run, log: createRecordedLog() })
  onTestFinished(passes.end)
  return passes
}

/** A project with these files in a temporary folder, by default a git repository in which they are committed. */
export const createRepository = (files: Files, git = true): string => {
  const root = join(temporaryFolder(), "project")
  mkdirSync(join(root, ".opencode"), { recursive: true })
  writeFiles(root, files)
  if ("tool.sh" in files) chmodSync(join(root, "tool.sh"), 0o755)
  if (git) {
    gitIn(root, "init", "-q", "-b", "main")
    gitIn(root, "add", "-A")
    gitIn(root, "commit", "-q", "-m", "start")
  }
  return root
}

/** The passes of such a project. */
export const createPassProject = ({
  files = { "a.txt": "one\ntwo\nthree\n", "src/b.txt": "bee\n", "tool.sh": "#!/bin/sh\n", ".gitignore": "ignored/\n" },
  git = true,
}: {
  files?: Files
  git?: boolean
} = {}) => {
  const root = createRepository(files, git)
  /** Opens the passes as a process of OpenCode does; a second call stands for another process with its own memory. */
  const connect = (directory = root): TestSandboxes => connectSandboxes(root, directory)
  const passes = connect()
  type Beginning = { parent?: string; passes?: TestSandboxes; writes?: Files }
  /** Begins a pass that may change files; its child writes some. */
  const begin = async (
    passID: string,
    { parent, passes: other = passes, writes = {} }: Beginning = {},
  ): Promise<Sandbox & { sandbox: string }> => {
    const made = await other.create(passID, { canModify: true, ...(parent === undefined ? {} : { parent }) })
    if (made.kind === "refused" || made.sandbox === undefined) throw new Error(JSON.stringify(made))
    const missing = await other.ready(passID)
    if (missing) throw new Error(JSON.stringify(missing))
    writeFiles(made.sandbox, writes)
    return { ...made, sandbox: made.sandbox }
  }
  return {
    root,
    connect,
    passes,
    begin,
    /** Begins a pass whose child writes these files and returns. @returns the changes, which are stored */
    store: async (passID: string, writes: Files) => {
      await begin(passID, { writes })
      return succeed(await passes.collect(passID))
    },
  }
}

export type PassProject = ReturnType<typeof createPassProject>

/** The permissions of a file or folder, such as 0o644. */
export const modeOf = (path: string): number => lstatSync(path).mode & 0o777

/** Where the state keeps a pass. */
export const passPlace = (root: string, name: string, ...path: string[]): string =>
  join(root, ".opencode", "state", "pass-over", idOf(name), ...path)

/**
 * Starts a process that begins a pass, whose child makes these changes, and applies them; null deletes a file. It prints its
 * steps, a line each: started, created, ready, edited, collected.
 */
export const spawnPass = ({ path }: OpenCodeBinary, root: string, id: string, edits: Record<string, string | null>) => {
  const script = join(REPOSITORY, "test", "fixtures", "pass-files.ts")
  const argv = ["--no-env-file", "--config=/dev/null", "run", script, root, id, JSON.stringify(edits)]
  const env = { ...process.env, BUN_BE_BUN: "1" }
  return endWithTest(spawn(path, argv, { env, stdio: ["ignore", "pipe", "inherit"] }))
}

/** The result of a call that must succeed. */
export const succeed = <T extends { kind: string }>(result: T): Exclude<T, { kind: "refused" }> => {
  if (result.kind === "refused") throw new Error(JSON.stringify(result))
  return result as Exclude<T, { kind: "refused" }>
}

export const removeIn = (folder: string, path: string): void => rmSync(join(folder, path), { recursive: true })
