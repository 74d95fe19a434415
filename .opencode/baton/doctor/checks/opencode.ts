import { join } from "node:path"
import { findPrograms, isExecutableFile } from "../../host/process.ts"
import { broken, type Check, type Observation, ok, type Subject, warning } from "../finding.ts"

/** The oldest version every test runs on; 2.x refuses plugins of the 1.x kind (docs/opencode-notes.md). */
const OLDEST = [1, 2, 15] as const
const RANGE = "1.2.15 or newer, below 2"
const VERSION_DEADLINE_MS = 20_000

const INSTALL =
  "Install OpenCode (https://opencode.ai/docs), or set BATON_OPENCODE to its binary. OpenCode Desktop brings no command: it is not seen here."

type Located = { readonly path: string } | { readonly problem: Observation }

const locate = async ({ environment, home }: Subject): Promise<Located> => {
  const named = environment.BATON_OPENCODE
  if (named) {
    if (await isExecutableFile(named)) return { path: named }
    const message = `BATON_OPENCODE is '${named}', which is not a program`
    return { problem: broken(message, "Set BATON_OPENCODE to OpenCode's binary, or unset it.") }
  }
  // The plugins set it for the agent's shell: the OpenCode that is running.
  const running = environment.BATON_RUNTIME
  if (running && (await isExecutableFile(running))) return { path: running }
  const [onPath] = await findPrograms("opencode", environment.PATH)
  if (onPath !== undefined) return { path: onPath }
  const installed = join(home, ".opencode", "bin", "opencode")
  if (await isExecutableFile(installed)) return { path: installed }
  return { problem: broken("no OpenCode found on PATH", INSTALL) }
}

/** Even `--version` makes OpenCode write its folders and a library of 4 MB, and fetch its list of models. */
const isolated = (scratch: string): Record<string, string | undefined> => ({
  BUN_BE_BUN: undefined,
  XDG_CONFIG_HOME: join(scratch, "config"),
  XDG_DATA_HOME: join(scratch, "data"),
  XDG_CACHE_HOME: join(scratch, "cache"),
  XDG_STATE_HOME: join(scratch, "state"),
  OPENCODE_DISABLE_MODELS_FETCH: "1",
  OPENCODE_DISABLE_AUTOUPDATE: "1",
  PWD: scratch,
  TMPDIR: scratch,
})

/** @param version as `opencode --version` prints it */
export const judgeVersion = (version: string, path: string): Observation => {
  const found = `OpenCode ${version} (${path})`
  const numbers = /^(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number)
  if (numbers === undefined || numbers[0] === 0) {
    return warning(`${found}: a build without a release number`, `Use a release if something fails: ${RANGE}.`)
  }
  const [major = 0] = numbers
  if (major >= 2) {
    return broken(`${found}: OpenCode 2.x is not supported, it refuses plugins of this kind`, `Use OpenCode ${RANGE}.`)
  }
  const different = numbers.findIndex((number, index) => number !== OLDEST[index])
  const older = different >= 0 && (numbers[different] ?? 0) < (OLDEST[different] ?? 0)
  if (older) return broken(`${found} is too old`, `Upgrade: opencode upgrade. Supported: ${RANGE}.`)
  return ok(`${found}; supported: ${RANGE}`)
}

export const openCodeCheck: Check = {
  id: "opencode",
  examine: async (subject) => {
    const located = await locate(subject)
    if ("problem" in located) return [located.problem]
    const { path } = located
    const outcome = await subject.run([path, "--version"], {
      cwd: subject.scratch,
      deadlineMs: VERSION_DEADLINE_MS,
      env: isolated(subject.scratch),
    })
    const fix = `Run '${path} --version' to see why; reinstall OpenCode, or set BATON_OPENCODE to its binary.`
    switch (outcome.kind) {
      case "not-started":
        return [broken(`${path} does not start: ${outcome.cause}`, fix)]
      case "timed-out":
        return [broken(`${path} --version gave no answer within ${outcome.deadlineMs} ms`, fix)]
      case "exited": {
        const version = outcome.stdout.trim().split("\n").at(-1) ?? ""
        if (outcome.exitCode === 0 && version !== "") return [judgeVersion(version, path)]
        const said = (outcome.stderr || outcome.stdout).trim().slice(0, 200)
        return [broken(`${path} --version ended with exit code ${outcome.exitCode}: ${said}`, fix)]
      }
    }
  },
}
