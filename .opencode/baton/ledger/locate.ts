import { type FileHandle, open } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"
import { describeError, type Log } from "../host/log.ts"
import { type Argv, findExecutables } from "../host/process.ts"
import type { ForeignProgram, LedgerProgram } from "./ledger.ts"

type LocatedLedger =
  | { readonly kind: "real"; readonly path: string; readonly command: Argv }
  | {
      readonly kind: "embedded"
      readonly path: string
      readonly command: Argv
      readonly env: Readonly<Record<string, string>>
    }
  | { readonly kind: "unavailable"; readonly reason: string }

export type LedgerLocatorDeps = {
  readonly log: Log
  /** Absolute path of `.opencode/baton`. */
  readonly bundleRoot: string
  /** PATH is searched; BATON_LEDGER (`real` or `embedded`) forces one of the two. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly runtime: { readonly execPath: string; readonly isBun: boolean; readonly platform: NodeJS.Platform }
}

/** The ledger's database, for prog and the embedded ledger alike. */
export const databasePath = (env: LedgerLocatorDeps["env"], home = env.HOME || homedir()): string =>
  env.PROG_DB || join(home, ".prog", "prog.db")

/** The second line of bin/prog, in every copy of it. */
const LAUNCHER_MARK = "\n# baton-ledger-launcher\n"
const MARKED_BYTES = 200
/**
 * A Go program contains the name of its module; a wrapper script for another database contains PROG_DB. bin/prog uses the
 * same rule, so that the agent's `prog` and Baton's calls use one ledger. No unknown program is run to find out.
 */
const LEDGER_MARKS = ["github.com/baiirun/prog", "PROG_DB"]
const LONGEST_MARK = Math.max(...LEDGER_MARKS.map((mark) => mark.length))
const CHUNK_BYTES = 1024 * 1024

const isLauncher = (start: Buffer): boolean => start.toString("latin1", 0, MARKED_BYTES).includes(LAUNCHER_MARK)

/** Identifies a program called prog by its content. @throws the file system's error */
const recognise = async (file: FileHandle): Promise<"launcher" | "ledger" | "foreign"> => {
  const buffer = Buffer.alloc(LONGEST_MARK + CHUNK_BYTES)
  // The end of the previous chunk is kept in front, for a mark that crosses the boundary.
  let carried = 0
  for (let at = 0; ; ) {
    const { bytesRead } = await file.read(buffer, carried, CHUNK_BYTES, at)
    const filled = carried + bytesRead
    if (at === 0 && isLauncher(buffer.subarray(0, filled))) return "launcher"
    if (LEDGER_MARKS.some((mark) => buffer.subarray(0, filled).includes(mark))) return "ledger"
    if (bytesRead === 0) return "foreign"
    at += bytesRead
    carried = Math.min(filled, LONGEST_MARK)
    buffer.copyWithin(0, filled - carried, filled)
  }
}

const recogniseProgram = async (path: string): Promise<"launcher" | "ledger" | { readonly foreign: string }> => {
  try {
    const file = await open(path)
    try {
      const kind = await recognise(file)
      return kind === "foreign" ? { foreign: `it names neither ${LEDGER_MARKS.join(" nor ")}` } : kind
    } finally {
      await file.close()
    }
  } catch (error) {
    return { foreign: `it cannot be read: ${describeError(error)}` }
  }
}

/** The embedded ledger: run by the host's own binary on Bun, elsewhere by the launcher, which looks for a runtime. */
export const embeddedLedger = ({
  bundleRoot,
  runtime,
}: Pick<LedgerLocatorDeps, "bundleRoot" | "runtime">): Extract<LocatedLedger, { kind: "embedded" }> => {
  const main = join(bundleRoot, "ledger", "embedded", "main.ts")
  const launcher = join(bundleRoot, "bin", "prog")
  if (!runtime.isBun) {
    return { kind: "embedded", path: launcher, command: [launcher], env: { BATON_LEDGER: "embedded" } }
  }
  // The project's own .env and bunfig.toml (which may preload code) must not affect the ledger.
  const nowhere = runtime.platform === "win32" ? "NUL" : "/dev/null"
  const command: Argv = [runtime.execPath, "--no-env-file", `--config=${nowhere}`, "run", main]
  return { kind: "embedded", path: main, command, env: { BUN_BE_BUN: "1" } }
}

/** Finds the ledger program: a real prog on PATH, else the embedded one. Runs nothing. */
export const createLedgerLocator = (deps: LedgerLocatorDeps) => {
  const { log, env, runtime } = deps
  const foreign = new Map<string, ForeignProgram>()
  let known: Promise<LocatedLedger> | undefined

  const search = async (): Promise<LocatedLedger> => {
    const forced = env.BATON_LEDGER
    if (forced === "embedded") return embeddedLedger(deps)
    for (const path of await findExecutables(runtime.platform === "win32" ? "prog.exe" : "prog", env.PATH)) {
      const found = await recogniseProgram(path)
      if (found === "ledger") return { kind: "real", path, command: [path] }
      if (found === "launcher" || foreign.has(path)) continue
      foreign.set(path, { path, reason: found.foreign })
      log.warn("a program called prog is not the ledger and is not used", { path, reason: found.foreign })
    }
    if (forced !== "real") return embeddedLedger(deps)
    return { kind: "unavailable", reason: "BATON_LEDGER asks for the real prog and PATH has none" }
  }

  return {
    /** Finds the program at the first call and caches it; an unavailable one is searched for again. */
    locate: async (): Promise<LocatedLedger> => {
      known ??= search()
      const located = await known
      if (located.kind === "unavailable") known = undefined
      else log.debug("ledger program", { kind: located.kind, path: located.path })
      return located
    },
    /** Drops the cached program, for example after it was removed. */
    forget: (): void => {
      known = undefined
    },
    foreign: (): readonly ForeignProgram[] => [...foreign.values()],
  }
}

export const ownRuntime = (): LedgerLocatorDeps["runtime"] => ({
  execPath: process.execPath,
  isBun: process.versions.bun !== undefined,
  platform: process.platform,
})

export const isUnknownTask = (stderr: string): boolean => /item not found:|FOREIGN KEY constraint failed/.test(stderr)

/** The embedded ledger's refusal, and prog's for the file without tables that it has just made. */
export const isMissingLedger = (stderr: string): boolean =>
  /^Error: (?:failed to open database .*: no ledger is there|migration failed: .*no such table: items)/m.test(stderr)

export const complaint = (stderr: string): string =>
  (/^Error: (.+)$/m.exec(stderr)?.[1] ?? stderr.trim().split("\n")[0] ?? "").slice(0, 300)

export const toProgram = (located: LocatedLedger): LedgerProgram =>
  located.kind === "unavailable" ? located : { kind: located.kind, path: located.path }
