/** A failure of the store, in the words of prog's SQLite driver: `constraint failed: FOREIGN KEY … (787)`. */
export class StoreError extends Error {
  readonly code: number

  /** @param code SQLite's extended result code */
  constructor(message: string, code: number, cause?: unknown) {
    super(message, { cause })
    this.name = "StoreError"
    this.code = code
  }
}

const RESULT_TEXTS: Readonly<Record<number, string>> = {
  1: "SQL logic error",
  3: "access permission denied",
  5: "database is locked",
  8: "attempt to write a readonly database",
  10: "disk I/O error",
  11: "database disk image is malformed",
  13: "database or disk is full",
  14: "unable to open database file",
  19: "constraint failed",
  26: "file is not a database",
}

const PRIMARY_CODE_MASK = 0xff
const SQLITE_BUSY = 5

/** A StoreError worded as modernc.org/sqlite words it: `<result text>: <detail> (<code>)`. */
export const storeError = (detail: string, code: number, cause?: unknown): StoreError => {
  const text = RESULT_TEXTS[code & PRIMARY_CODE_MASK] ?? "unknown error"
  const busy = code === SQLITE_BUSY ? " (SQLITE_BUSY)" : ""
  const message = detail === text || detail === "" ? text : `${text}: ${detail}`
  return new StoreError(`${message} (${code})${busy}`, code, cause)
}
