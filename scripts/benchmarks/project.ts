import { execFile } from "node:child_process"
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { openTestLedger } from "../../test/support/ledger/test-ledger.ts"
import { type Script, startScriptedModel } from "../../test/support/model/scripted-model.ts"
import type { OpenCodeBinary } from "../../test/support/opencode/opencode-binary.ts"
import { type RunOptions, type RunResult, runOpenCode } from "../../test/support/opencode/opencode-run.ts"
import { startServer, type TestServer } from "../../test/support/opencode/opencode-server.ts"
import { createTestProject, type ProjectOptions } from "../../test/support/opencode/test-project.ts"
import type { Note } from "./inside/probe.ts"

export const INSIDE = join(import.meta.dirname, "inside")
const SCRIPT_DEADLINE_MS = 120_000

export const TASK = {
  title: "Teach the parser CRLF",
  specification: "Lines may end in CRLF.\nKeep LF as it is.",
  definitionOfDone: "bun test passes on Windows line ends",
}
export const BRIEF = "Never touch the lexer; the release is frozen until Friday."

export const workerMessage = (taskID = "ts-b54507", brief = BRIEF): string =>
  `# Worker\n\nTask: ${taskID}\n\n${brief}\n`

/** A project with a scripted model; `await using` removes both, even after an error. */
export const openProject = async (
  binary: OpenCodeBinary,
  script: Script = () => ({ text: "Finished." }),
  options: Partial<ProjectOptions> = {},
) => {
  const model = await startScriptedModel(script)
  const project = createTestProject({ binary, modelURL: model.url, ...options })
  return {
    binary,
    model,
    project,
    /** `opencode run MESSAGE`. @throws when the exit code is not 0 */
    run: async (message: string, extra: Omit<RunOptions, "binary" | "project"> = {}): Promise<RunResult> => {
      const result = await runOpenCode(message, { binary, project, ...extra })
      if (result.exitCode === 0) return result
      throw new Error(`opencode ${binary.version} run exited with ${result.exitCode}: ${result.stderr.slice(-500)}`)
    },
    addTask: (task: Partial<typeof TASK> = {}) => openTestLedger(project, binary).addTask({ ...TASK, ...task }),
    [Symbol.asyncDispose]: async () => {
      await model.close()
      await project.remove()
    },
  }
}

export type BenchProject = Awaited<ReturnType<typeof openProject>>

/** An `opencode serve` in the project with additional environment variables; `await using` stops it. */
export const openServer = async (
  { binary, project }: Pick<BenchProject, "binary" | "project">,
  environment: Record<string, string> = {},
) => {
  const server = await startServer(binary, { ...project, environment: { ...project.environment, ...environment } })
  return { ...server, [Symbol.asyncDispose]: server.stop }
}

type Speaker = Pick<TestServer, "client">

export const createSession = async ({ client }: Speaker): Promise<string> => {
  const { data, error } = await client.session.create({ body: {} })
  if (data) return data.id
  throw new Error(`no session was created: ${JSON.stringify(error)}`)
}

/** Sends a user's message and waits for the whole turn. @returns milliseconds. @throws when OpenCode or the model fails */
export const speak = async ({ client }: Speaker, id: string, text: string, noReply = false): Promise<number> => {
  const started = performance.now()
  const body = { noReply, parts: [{ type: "text" as const, text }] }
  const { data, error } = await client.session.prompt({ path: { id }, body })
  const wrong = error ?? (noReply ? undefined : data?.info.error)
  if (wrong) throw new Error(`a turn failed: ${JSON.stringify(wrong).slice(0, 300)}`)
  return performance.now() - started
}

/** Compacts the session as `/compact` does. */
export const compact = async ({ client }: Speaker, id: string): Promise<void> => {
  const body = { providerID: "scripted", modelID: "model" }
  const { error } = await client.session.summarize({ path: { id }, body })
  if (error) throw new Error(`the compaction of ${id} failed: ${JSON.stringify(error).slice(0, 300)}`)
}

/** A plugin that loads the bundle's plugins from the folder in its environment. */
export const PROBE = `export * from ${JSON.stringify(join(INSIDE, "probe.ts"))}\n`

/**
 * Replaces the bundle's plugins with the probe.
 *
 * @returns the plugins' new folder, the probe's environment, and its notes
 */
export const useProbe = ({ project }: Pick<BenchProject, "project">) => {
  const openCode = join(project.directory, ".opencode")
  const [plugins, file] = [join(openCode, "bundle-plugins"), join(project.home, "notes.jsonl")]
  renameSync(join(openCode, "plugins"), plugins)
  mkdirSync(join(openCode, "plugins"))
  writeFileSync(join(openCode, "plugins", "bench.ts"), PROBE)
  const notes = <Kind extends Note["kind"]>(kind: Kind): Extract<Note, { kind: Kind }>[] => {
    const lines = readFileSync(file, "utf8").trim().split("\n")
    const all = lines.map((line) => JSON.parse(line) as Note)
    return all.filter((note): note is Extract<Note, { kind: Kind }> => note.kind === kind)
  }
  return { plugins, environment: { BATON_BENCH_PLUGINS: plugins, BATON_BENCH_NOTES: file }, notes }
}

/** Lists of numbers by name, printed as JSON by a program of `inside/`; an unknown name gives an empty list. */
export const readNumbers = (printed: string): ((name: string) => number[]) => {
  const numbers = JSON.parse(printed) as Record<string, number[]>
  return (name) => numbers[name] ?? []
}

const run = promisify(execFile)

/**
 * Runs a script of `inside/` in a fresh process of OpenCode's runtime.
 *
 * @throws when it fails or prints other text
 */
export const runInside = async (
  binary: OpenCodeBinary,
  script: string,
  ...args: readonly (string | number)[]
): Promise<(name: string) => number[]> => {
  const argv = ["--no-env-file", "--config=/dev/null", "run", join(INSIDE, script), ...args.map(String)]
  const env = { ...process.env, BUN_BE_BUN: "1" }
  const { stdout } = await run(binary.path, argv, { env, timeout: SCRIPT_DEADLINE_MS, maxBuffer: 2 ** 24 })
  return readNumbers(stdout)
}
