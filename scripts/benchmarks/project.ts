import { execFile } from "node:child_process"
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import type { ModelProject } from "../../test/support/opencode/model-project.ts"
import type { OpenCodeBinary } from "../../test/support/opencode/opencode-binary.ts"
import type { Note } from "./inside/probe.ts"

export const INSIDE = join(import.meta.dirname, "inside")
const SCRIPT_DEADLINE_MS = 120_000

/** A plugin that loads the bundle's plugins from the folder in its environment. */
const PROBE = `export * from ${JSON.stringify(join(INSIDE, "probe.ts"))}\n`

/**
 * Replaces the bundle's plugins with the probe.
 *
 * @returns the plugins' new folder, the probe's environment, and its notes
 */
export const useProbe = ({ project }: Pick<ModelProject, "project">) => {
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

/** Runs a script of `inside/` in a fresh process of OpenCode's runtime. @throws when it fails or prints other text */
export const runInside = async (
  binary: OpenCodeBinary,
  script: string,
  ...args: readonly (string | number)[]
): Promise<(name: string) => number[]> => {
  const argv = ["--no-env-file", "--config=/dev/null", "run", join(INSIDE, script), ...args.map(String)]
  const env = { ...process.env, BUN_BE_BUN: "1" }
  const { stdout } = await promisify(execFile)(binary.path, argv, {
    env,
    timeout: SCRIPT_DEADLINE_MS,
    maxBuffer: 2 ** 24,
  })
  return readNumbers(stdout)
}
