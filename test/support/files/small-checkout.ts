import { spawnSync } from "node:child_process"
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { pathToFileURL } from "node:url"
import { deadline } from "../opencode/deadline.ts"
import { REPOSITORY } from "../opencode/opencode-binary.ts"
import { temporaryFolder } from "./with-test.ts"

export type Outcome = { exitCode: number | null; stdout: string; stderr: string }

const PLUGIN =
  'import { createThing } from "../baton/host/thing.ts"\n\nexport const Thing = async () => createThing()\n'

const rolePrompt = (role: string): string =>
  `# ${role}\n\nTask: {{task_id}}\n\n<!-- baton:protocol -->\nWork.\n<!-- /baton:protocol -->\n`

const FILES = {
  "package.json": '{\n  "name": "baton",\n  "version": "1.0.0",\n  "private": true\n}\n',
  ".opencode/plugins/thing.ts": PLUGIN,
  ".opencode/baton/host/thing.ts": "export const createThing = () => ({})\n",
  ".opencode/baton/ledger/embedded/main.ts": "export {}\n",
  ".opencode/baton/bin/tool": "#!/bin/sh\necho tool\n",
  "prompts/handoff.md": "<!-- baton:handoff -->\nWrite the handoff.\n",
  "prompts/handoff-command.md": "<!-- baton:handoff-command -->\nCall handoff_session: $ARGUMENTS\n",
  "prompts/worker.md": rolePrompt("Worker"),
  "prompts/planner.md": rolePrompt("Planner"),
}

const put = (path: string, text: string): void => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

export const runScript = (
  argv: readonly [string, ...string[]],
  options: { cwd: string; env?: NodeJS.ProcessEnv; uid?: number } = { cwd: tmpdir() },
): Outcome => {
  const [program, ...args] = argv
  const limits = { encoding: "utf8", timeout: deadline(60_000) } as const
  const { status, stdout, stderr, error } = spawnSync(program, args, { ...limits, ...options })
  if (error) throw error
  return { exitCode: status, stdout, stderr }
}

const SIGNAL_AT_CALL = pathToFileURL(join(REPOSITORY, "test/fixtures/signal-at-call.mjs")).href

/**
 * Runs a program on Node, which gets a signal at a call of a function of node:fs.
 *
 * @param at such as `renameSync 2 SIGKILL`: its second call
 */
export const runWithSignal = (at: string, argv: readonly string[], options?: Parameters<typeof runScript>[1]) =>
  runScript([process.execPath, "--import", SIGNAL_AT_CALL, ...argv], {
    ...options,
    cwd: options?.cwd ?? tmpdir(),
    env: { ...(options?.env ?? process.env), BATON_TEST_SIGNAL: at },
  })

/**
 * The install script with a few files in place of the real bundle, and a project beside it.
 *
 * @param names of the checkout's folder and of the project's, for example with spaces
 */
export const createSmallCheckout = (names = { source: "checkout", project: "project" }) => {
  const root = temporaryFolder()
  chmodSync(root, 0o755)
  const source = join(root, names.source)
  const project = join(root, names.project)
  mkdirSync(project)
  for (const [path, text] of Object.entries(FILES)) put(join(source, path), text)
  chmodSync(join(source, ".opencode/baton/bin/tool"), 0o755)
  cpSync(join(REPOSITORY, "scripts", "install"), join(source, "scripts", "install"))
  cpSync(join(REPOSITORY, "scripts", "lib"), join(source, "scripts", "lib"), { recursive: true })
  return {
    root,
    source,
    project,
    /** Changes the checkout; `write`, `read` and `has` are about the project. */
    ship: (path: string, text: string) => put(join(source, path), text),
    unship: (path: string) => rmSync(join(source, path)),
    write: (path: string, text: string) => put(join(project, path), text),
    /** Puts a link into the project, and the folders above it. */
    link: (target: string, path: string) => {
      mkdirSync(dirname(join(project, path)), { recursive: true })
      symlinkSync(target, join(project, path))
    },
    read: (path: string) => readFileSync(join(project, path), "utf8"),
    has: (path: string) => existsSync(join(project, path)),
    /** Runs the program of the checkout's scripts/install with the project and further arguments. */
    install: (...args: string[]) =>
      runScript([process.execPath, join(source, "scripts/lib/install.mjs"), project, ...args], { cwd: root }),
  }
}

export type SmallCheckout = ReturnType<typeof createSmallCheckout>
