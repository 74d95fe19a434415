import { constants } from "node:fs"
import { access, open, stat } from "node:fs/promises"
import { delimiter, isAbsolute, join } from "node:path"
import type { Log } from "../host/log.ts"
import type { Argv, ProcessOutcome, RunProcess } from "../host/process-port.ts"
import type { ForeignProgram } from "./ledger.ts"

export type LocatedLedger =
  | { readonly kind: "real"; readonly path: string; readonly command: Argv }
  | {
      readonly kind: "embedded"
      readonly path: string
      readonly command: Argv
      readonly env: Readonly<Record<string, string>>
    }
  /** `hung`: a program on PATH did not answer, so nothing is known about it. */
  | { readonly kind: "unavailable"; readonly reason: string; readonly hung: boolean }

export type LedgerLocator = {
  /** Finds the program on the first call and remembers it; one that is unavailable is looked for again. */
  locate(deadlineMs: number): Promise<LocatedLedger>
  /** Drops what is remembered, for when the program turns out to be gone. */
  forget(): void
  foreign(): readonly ForeignProgram[]
}

export type LedgerLocatorDeps = {
  readonly run: RunProcess
  readonly directory: string
  readonly log: Log
  /** Absolute path of `.opencode/baton`. */
  readonly bundleRoot: string
  /** PATH is searched; BATON_LEDGER (`real` or `embedded`) forces one of the two. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly runtime: { readonly execPath: string; readonly isBun: boolean; readonly platform: NodeJS.Platform }
}

const PROBE = "--help"
const PROBE_DEADLINE_MS = 2000
/** The second line of bin/prog, in every copy of it. */
const LAUNCHER_MARK = "\n# baton-ledger-launcher\n"
const MARKED_BYTES = 200
const COMMANDS = ["add", "desc", "log", "ready", "show"]

/** Whether this is what `prog --help` answers: cobra's usage line and the commands Baton needs (prog v0.17.0). */
export const isLedgerHelp = (help: string): boolean =>
  /^\s+prog \[command\]/m.test(help) && COMMANDS.every((name) => new RegExp(`^\\s+${name}\\s`, "m").test(help))

const describeProbe = (outcome: Exclude<ProcessOutcome, { kind: "timed-out" }>): string =>
  outcome.kind === "not-started"
    ? outcome.cause
    : `\`prog ${PROBE}\` exited with ${outcome.exitCode} and does not list ${COMMANDS.join(", ")}`

const isProgram = async (path: string): Promise<boolean> => {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    // Absent, a broken link or not ours to run: not a candidate.
    return false
  }
}

const isLauncher = async (path: string): Promise<boolean> => {
  try {
    const file = await open(path)
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(MARKED_BYTES), 0, MARKED_BYTES, 0)
      return buffer.toString("latin1", 0, bytesRead).includes(LAUNCHER_MARK)
    } finally {
      await file.close()
    }
  } catch {
    // A program that may be run and not be read is no script, so no launcher.
    return false
  }
}

/** Absolute paths of every `prog` on PATH, in order, without Baton's own launchers, linked or copied. */
const findCandidates = async ({ env, runtime }: LedgerLocatorDeps): Promise<string[]> => {
  const name = runtime.platform === "win32" ? "prog.exe" : "prog"
  const candidates: string[] = []
  // A relative PATH entry would run whatever the project holds.
  for (const folder of (env.PATH ?? "").split(delimiter).filter(isAbsolute)) {
    const path = join(folder, name)
    const isKnown = candidates.includes(path)
    if (!isKnown && (await isProgram(path)) && !(await isLauncher(path))) candidates.push(path)
  }
  return candidates
}

/** The embedded ledger: on Bun by the host's own binary, elsewhere by the launcher, which looks for one. */
const embeddedLedger = ({ bundleRoot, runtime }: LedgerLocatorDeps): LocatedLedger => {
  const main = join(bundleRoot, "ledger", "embedded", "main.ts")
  const launcher = join(bundleRoot, "bin", "prog")
  if (!runtime.isBun) {
    return { kind: "embedded", path: launcher, command: [launcher], env: { BATON_LEDGER: "embedded" } }
  }
  // The project's own .env and bunfig.toml (which may preload code) are not the ledger's.
  const nowhere = runtime.platform === "win32" ? "NUL" : "/dev/null"
  const command: Argv = [runtime.execPath, "--no-env-file", `--config=${nowhere}`, "run", main]
  return { kind: "embedded", path: main, command, env: { BUN_BE_BUN: "1" } }
}

/** Finds the ledger program of a directory: a real prog on PATH, else the embedded one. Starts nothing before `locate`. */
export const createLedgerLocator = (deps: LedgerLocatorDeps): LedgerLocator => {
  const { run, directory, log, env } = deps
  const foreign = new Map<string, ForeignProgram>()
  let known: Promise<LocatedLedger> | undefined

  const probe = async (path: string, deadlineMs: number): Promise<LocatedLedger | undefined> => {
    const outcome = await run([path, PROBE], { cwd: directory, deadlineMs: Math.min(deadlineMs, PROBE_DEADLINE_MS) })
    if (outcome.kind === "timed-out") {
      return { kind: "unavailable", reason: `${path} did not answer within ${outcome.deadlineMs} ms`, hung: true }
    }
    if (outcome.kind === "exited" && outcome.exitCode === 0 && isLedgerHelp(outcome.stdout)) {
      return { kind: "real", path, command: [path] }
    }
    if (!foreign.has(path)) {
      const reason = describeProbe(outcome)
      foreign.set(path, { path, reason })
      log.warn("a program called prog is not the ledger and is not used", { path, reason })
    }
    return undefined
  }

  const search = async (deadlineMs: number): Promise<LocatedLedger> => {
    const endsAt = performance.now() + deadlineMs
    const forced = env.BATON_LEDGER
    if (forced === "embedded") return embeddedLedger(deps)
    for (const path of await findCandidates(deps)) {
      const found = await probe(path, endsAt - performance.now())
      if (found) return found
    }
    if (forced !== "real") return embeddedLedger(deps)
    return { kind: "unavailable", reason: "BATON_LEDGER asks for the real prog and PATH has none", hung: false }
  }

  return {
    locate: async (deadlineMs) => {
      known ??= search(deadlineMs)
      const located = await known
      if (located.kind === "unavailable") known = undefined
      else log.debug("ledger program", { kind: located.kind, path: located.path })
      return located
    },
    forget: () => {
      known = undefined
    },
    foreign: () => [...foreign.values()],
  }
}
