import { constants } from "node:fs"
import { access, open, stat } from "node:fs/promises"
import { join } from "node:path"
import { describeError, errorCode } from "../../host/log.ts"
import { broken, type Check, type Observation, ok, type Subject, warning } from "../finding.ts"
import { locateLedger } from "../locate-ledger.ts"

/** prog's schema that Baton knows: `PRAGMA user_version`; docs/ledger.md. */
const SCHEMA_VERSION = 3

/** https://www.sqlite.org/fileformat.html, "The Database Header". */
const HEADER_BYTES = 100
const MAGIC = "SQLite format 3\u0000"
const USER_VERSION_OFFSET = 60

export type Header =
  | { readonly kind: "empty" }
  | { readonly kind: "foreign" }
  | { readonly kind: "sqlite"; readonly version: number }

export const parseHeader = (bytes: Buffer): Header => {
  if (bytes.length === 0) return { kind: "empty" }
  if (bytes.length < HEADER_BYTES || bytes.toString("latin1", 0, MAGIC.length) !== MAGIC) return { kind: "foreign" }
  return { kind: "sqlite", version: bytes.readInt32BE(USER_VERSION_OFFSET) }
}

/** The file is read, never opened as a database: opening one in WAL mode makes files beside it. */
const readHeader = async (path: string): Promise<Header> => {
  const file = await open(path, "r")
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0)
    return parseHeader(buffer.subarray(0, bytesRead))
  } finally {
    await file.close()
  }
}

const sizeOf = (path: string): Promise<number> =>
  stat(path).then(
    (found) => found.size,
    () => 0,
  )

/** @param unsettled whether a write-ahead log lies beside the file, so that its header may be behind */
export const judgeHeader = (path: string, header: Header, unsettled: boolean): Observation => {
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

const judgeAbsent = async (path: string, subject: Subject): Promise<Observation> => {
  const { program } = await locateLedger(subject)
  if (program.kind === "embedded") return ok(`${path} is made by the first command of the embedded ledger`)
  return warning(`there is no database at ${path}`, "Run: prog init")
}

const examine = async (subject: Subject): Promise<Observation> => {
  const { environment, home } = subject
  const path = environment.PROG_DB || join(home, ".prog", "prog.db")
  const fix = `Make it a file that you can read and write, or set PROG_DB to another one.`
  try {
    await access(path, constants.R_OK | constants.W_OK)
    if (!(await stat(path)).isFile()) return broken(`${path} is not a file`, fix)
    return judgeHeader(path, await readHeader(path), (await sizeOf(`${path}-wal`)) > 0)
  } catch (error) {
    if (errorCode(error) === "ENOENT") return await judgeAbsent(path, subject)
    return broken(`${path} cannot be used: ${errorCode(error) ?? describeError(error)}`, fix)
  }
}

export const databaseCheck: Check = {
  id: "database",
  needsBundle: true,
  examine: async (subject) => [await examine(subject)],
}
