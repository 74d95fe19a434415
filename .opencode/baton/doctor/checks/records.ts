import { constants, existsSync, statSync } from "node:fs"
import { access, open, stat } from "node:fs/promises"
import { join } from "node:path"
import { describeError, errorCode, SILENT } from "../../host/log.ts"
import type { ProcessOutcome } from "../../host/process.ts"
import { OUTBOX_FOLDER, stateRoot } from "../../host/project.ts"
import { createStateFolder } from "../../host/state.ts"
import { findForeign, howToUse, listAside } from "../../host/state-mark.ts"
import { counted } from "../../host/text.ts"
import { readOwnBytes, runGit } from "../../host/untrusted.ts"
import { createLedger } from "../../ledger/client.ts"
import { listCopies, readFailure } from "../../ledger/copies.ts"
import { MADE_BY_BATON } from "../../ledger/copy-paths.ts"
import { timeAgo } from "../../ledger/embedded/format.ts"
import type { LedgerStatus } from "../../ledger/ledger.ts"
import {
  createOutboxStore,
  describeEntry,
  type OutboxStore,
  type ParkedEntry,
  recordID,
} from "../../ledger/outbox-store.ts"
import { databasePath } from "../../ledger/runner.ts"
import { createTaskStore } from "../../task/session-task.ts"
import type { Context } from "../context.ts"
import { broken, type Check, launcherOf, type Observation, ok, type Served, warning } from "../report.ts"

/** Finds the project's ledger program in the same way as the plugins. */
const locateLedger = ({ root, run, scratch, environment, serving }: Served): Promise<LedgerStatus> =>
  createLedger({
    run,
    directory: scratch,
    // Doctor reports findings instead of logging.
    log: SILENT,
    state: createStateFolder(root),
    bundleRoot: join(serving.folder, "baton"),
    env: environment,
  }).status()

const ANSWER_DEADLINE_MS = 2_000
const LEAVE_IT_ALONE = "Mend or remove that program, or set BATON_LEDGER=embedded to leave it alone."

const describeAnswer = (outcome: ProcessOutcome): string => {
  switch (outcome.kind) {
    case "exited":
      return `exited with ${outcome.exitCode} when asked for help`
    case "timed-out":
      return `did not answer within ${outcome.deadlineMs} ms`
    case "not-started":
      return `cannot be started: ${outcome.cause}`
  }
}

const checkReal = async (path: string, { run, scratch }: Pick<Context, "run" | "scratch">): Promise<Observation> => {
  const outcome = await run([path, "--help"], { cwd: scratch, deadlineMs: ANSWER_DEADLINE_MS })
  if (outcome.kind === "exited" && outcome.exitCode === 0) return ok(`real prog (${path})`)
  return broken(`no ledger: ${path} ${describeAnswer(outcome)}; records wait in the outbox`, LEAVE_IT_ALONE)
}

const checkProgram = async ({ program }: LedgerStatus, context: Served): Promise<Observation> => {
  switch (program.kind) {
    case "real":
      return checkReal(program.path, context)
    case "embedded":
      return existsSync(program.path)
        ? ok("embedded ledger, since no real prog is on PATH; both keep the same database")
        : broken(`no real prog on PATH, and the embedded ledger is missing: ${program.path}`, "Install Baton again.")
    case "unavailable":
      return broken(`no ledger: ${program.reason}; records wait in the outbox`, LEAVE_IT_ALONE)
  }
}

export const ledgerCheck: Check = {
  id: "ledger",
  needsBundle: true,
  run: async (context) => {
    const status = await locateLedger(context)
    const foreign = status.foreign.map(({ path, reason }) =>
      warning(
        `${path} is called prog and is not the ledger: ${reason}`,
        `Baton does not use it. In your own shell, write ${launcherOf("prog", context)}. A script around the real prog needs a line that names github.com/baiirun/prog.`,
      ),
    )
    return [await checkProgram(status, context), ...foreign]
  },
}

/** The version of prog's schema that Baton knows, from `PRAGMA user_version`; see docs/ledger.md. */
const SCHEMA_VERSION = 3

/** https://www.sqlite.org/fileformat.html, "The Database Header". */
const HEADER_BYTES = 100
const MAGIC = "SQLite format 3\u0000"
const USER_VERSION_OFFSET = 60
const APPLICATION_ID_OFFSET = 68

type Header =
  | { readonly kind: "empty" }
  | { readonly kind: "foreign" }
  /** `isOwn`: the embedded ledger made it. */
  | { readonly kind: "sqlite"; readonly version: number; readonly isOwn?: boolean }

export const parseHeader = (bytes: Buffer): Header => {
  if (bytes.length === 0) return { kind: "empty" }
  if (bytes.length < HEADER_BYTES || bytes.toString("latin1", 0, MAGIC.length) !== MAGIC) return { kind: "foreign" }
  const isOwn = bytes.readInt32BE(APPLICATION_ID_OFFSET) === MADE_BY_BATON
  return { kind: "sqlite", version: bytes.readInt32BE(USER_VERSION_OFFSET), ...(isOwn ? { isOwn } : {}) }
}

/** Reads the file without opening it as a database: opening one in WAL mode creates files beside it. */
const readHeader = async (path: string): Promise<Header> => {
  const file = await open(path, "r")
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0)
    return parseHeader(buffer.subarray(0, bytesRead))
  } finally {
    await file.close()
  }
}

/** @param unsettled true if there is a write-ahead log, so that the header may be outdated */
export const checkHeader = (path: string, header: Header, unsettled: boolean): Observation => {
  if (header.kind === "foreign") {
    return broken(`${path} is not an SQLite database`, "Move it away, or set PROG_DB to the ledger's file.")
  }
  const version = header.kind === "empty" ? 0 : header.version
  if (version === SCHEMA_VERSION) return ok(`${path}, schema version ${SCHEMA_VERSION}`)
  if (version > SCHEMA_VERSION) {
    const message = `${path} has schema version ${version}; Baton knows ${SCHEMA_VERSION}`
    return warning(message, "Install the prog that made it, so that the embedded ledger is not used; or upgrade Baton.")
  }
  if (unsettled) return ok(`${path} is in use; its schema version is not settled yet`)
  if (version === 0) return warning(`${path} holds no ledger yet`, "Run: prog init")
  return ok(`${path}, schema version ${version}; the next command brings it to ${SCHEMA_VERSION}`)
}

/** prog that runs before `prog init` leaves a file with other tables and version 2. */
const isWithoutLedger = async (path: string, header: Header): Promise<boolean> =>
  header.kind === "empty" ||
  (header.kind === "sqlite" &&
    header.version < SCHEMA_VERSION &&
    !readOwnBytes(path, { isForeign: true }).includes("CREATE TABLE items"))

const RESTORE = "Restore a backup of it, or set PROG_DB to where it is. For a new, empty one run: prog init"

/** A ledger was there if sessions have tasks from it, or records wait for it. */
const checkLost = async (path: string, { root }: Context): Promise<Observation | undefined> => {
  const state = createStateFolder(root)
  const [{ length: tasks }, { length: records }] = await Promise.all([
    createTaskStore({ state, log: SILENT }).keys(),
    createOutboxStore(state).list(),
  ])
  if (tasks + records === 0) return undefined
  const used = `sessions with a task: ${tasks}, records that wait: ${records}`
  return broken(
    `the ledger's database is missing: there is none at ${path}, and this project used it (${used})`,
    RESTORE,
  )
}

const checkAbsent = async (path: string, context: Served): Promise<Observation> => {
  const lost = await checkLost(path, context)
  if (lost) return lost
  const { program } = await locateLedger(context)
  if (program.kind === "embedded") return ok(`${path} is made by the first prog add of the embedded ledger`)
  return warning(`there is no database at ${path}`, "Run: prog init")
}

const checkFile = async (path: string, context: Served): Promise<Observation> => {
  const header = await readHeader(path)
  const unsettled = (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
  if (unsettled || !(await isWithoutLedger(path, header))) return checkHeader(path, header, unsettled)
  return (await checkLost(path, context)) ?? checkHeader(path, { kind: "empty" }, false)
}

const checkRecords = async (context: Served): Promise<Observation> => {
  const { environment, home } = context
  const path = databasePath(environment, home)
  const fix = `Make it a file that you can read and write, or set PROG_DB to another one.`
  try {
    await access(path, constants.R_OK | constants.W_OK)
    if (!(await stat(path)).isFile()) return broken(`${path} is not a file`, fix)
    return await checkFile(path, context)
  } catch (error) {
    if (errorCode(error) === "ENOENT") return await checkAbsent(path, context)
    return broken(`${path} cannot be used: ${errorCode(error) ?? describeError(error)}`, fix)
  }
}

const isOwnDatabase = async (path: string): Promise<boolean> => {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return false
  const header = await readHeader(path)
  return header.kind === "sqlite" && header.isOwn === true
}

/** The daily copies, which the embedded ledger makes of a database of its own. */
const checkCopies = async (context: Served): Promise<readonly Observation[]> => {
  const path = databasePath(context.environment, context.home)
  try {
    const [copies, failure] = [listCopies(path), readFailure(path)]
    const [newest] = copies
    const failed = "Mend the cause; the next change after an hour tries again."
    const failures = failure === undefined ? [] : [warning(`no copy of it could be made at ${failure}`, failed)]
    if (newest === undefined) {
      const isExpected = failure === undefined && (await isOwnDatabase(path))
      return isExpected
        ? [ok("no copy of it yet: the embedded ledger makes one at the first change of a day")]
        : failures
    }
    const { day, madeAt } = newest
    const age = timeAgo({ epochMs: madeAt, offsetMinutes: 0 }, Date.now())
    const restore = `${launcherOf("prog", context)} copies restore ${day}`
    const what = `${counted(copies.length, "copy", "copies")} of it, the newest of ${day} (${age})`
    return [ok(`${what}; to put that one in its place, run: ${restore}`), ...failures]
  } catch (error) {
    return [warning(`its copies cannot be listed: ${describeError(error)}`, "Make its folder one that you can read.")]
  }
}

export const databaseCheck: Check = {
  id: "database",
  needsBundle: true,
  run: async (context) => [await checkRecords(context), ...(await checkCopies(context))],
}

const MOST_SHOWN = 5

const describeParked = ({ file, record, reason, since }: ParkedEntry, command: string): Observation => {
  const what = record === undefined ? "a record" : `a ${describeEntry(record.entry)}`
  const message = `${what} could not be delivered and is parked${since === "" ? "" : ` since ${since}`}: ${reason}`
  const id = recordID(file)
  return warning(message, `Mend the cause and run ${command} retry ${id}; or delete ${file}.`)
}

/** Parsing a record needs zod, which a fresh project does not have; the notes beside the records can still be read. */
const listParked = async (
  files: OutboxStore,
  { outbox, command }: { outbox: string; command: string },
): Promise<readonly Observation[]> => {
  let parked: readonly ParkedEntry[]
  try {
    parked = await files.listParked()
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return [warning(`there are parked records, which cannot be read: ${why}`, `Read ${outbox}/parked/*.reason.`)]
  }
  const shown = parked.slice(0, MOST_SHOWN).map((entry) => describeParked(entry, command))
  const rest = parked.length - shown.length
  return rest > 0 ? [...shown, warning(`${rest} more records are parked`, `${command} lists them.`)] : shown
}

/** A session that just ended may leave a record that the next one delivers; its name begins with epoch milliseconds. */
const ON_ITS_WAY_MS = 60_000
const isOnItsWay = (name: string): boolean => Date.now() - Number.parseInt(name, 10) < ON_ITS_WAY_MS

const describeWaiting = (names: readonly string[], command: string): Observation => {
  const records = counted(names.length, "record")
  if (names.length === 0) return ok("no record waits to be delivered")
  if (names.every(isOnItsWay)) return ok(`${records} of the last minute on the way to the ledger`)
  const fix = `Run ${command} retry, which delivers them or says why not; OpenCode does it when it next works on a task here.`
  return warning(`${records} ${names.length === 1 ? "waits" : "wait"} to be delivered to the ledger`, fix)
}

export const outboxCheck: Check = {
  id: "outbox",
  needsBundle: true,
  readsState: true,
  run: async (context) => {
    const state = createStateFolder(context.root)
    const outbox = state.path(OUTBOX_FOLDER)
    const command = `${launcherOf("baton", context)} outbox`
    const files = createOutboxStore(state)
    return [describeWaiting(await files.list(), command), ...(await listParked(files, { outbox, command }))]
  },
}

const GIT_DEADLINE_MS = 5_000

const checkWritable = async (root: string): Promise<Observation> => {
  const state = stateRoot(root)
  // A project that a copy elsewhere serves may have no `.opencode` yet.
  const folder = [state, join(root, ".opencode")].find((path) => existsSync(path)) ?? root
  const fix = `Make it a folder that you can write in (chmod -R u+w '${folder}'); until then nothing survives a restart.`
  try {
    if (!(await stat(folder)).isDirectory()) return broken(`${folder} is not a folder`, fix)
    await access(folder, constants.W_OK | constants.X_OK)
  } catch (error) {
    return broken(`${folder} cannot be written in: ${errorCode(error) ?? describeError(error)}`, fix)
  }
  return ok(folder === state ? ".opencode/state is writable" : ".opencode/state is made when it is first needed")
}

/** The folder has its own .gitignore; without it run-time records could be committed. */
const checkIgnored = async ({ root, run }: Context): Promise<readonly Observation[]> => {
  if (!existsSync(stateRoot(root))) return []
  const outcome = await runGit(run, ["check-ignore", "-q", ".opencode/state/record"], {
    cwd: root,
    deadlineMs: GIT_DEADLINE_MS,
  })
  // 1 is "not ignored"; 128 is "no repository", and without git there is nothing to ignore.
  if (outcome.kind !== "exited" || outcome.exitCode !== 1) return []
  const fix = "Put a file .gitignore with the one line '*' into .opencode/state."
  return [warning("git does not ignore .opencode/state: its records could be committed", fix)]
}

const checkTrust = (root: string): readonly Observation[] => {
  const reason = findForeign(root)
  const notMade = "this account did not make it here"
  const aside = listAside(root).map((name) =>
    warning(`.opencode/${name} was put aside without being read, since ${notMade}`, howToUse(notMade)),
  )
  if (reason === undefined) return aside
  return [warning(`.opencode/state is not read: ${reason}`, howToUse(reason)), ...aside]
}

export const stateCheck: Check = {
  id: "state",
  needsBundle: true,
  run: async (context) => [
    await checkWritable(context.root),
    ...(await checkIgnored(context)),
    ...checkTrust(context.root),
  ],
}
