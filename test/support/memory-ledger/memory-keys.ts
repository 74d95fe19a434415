/** SQLite's complaints about keys, for the memory store. */
import { type StoreError, storeError } from "../../../.opencode/baton/ledger/embedded/store-error.ts"

const FOREIGN_KEY = 787
const PRIMARY_KEY = 1555
const UNIQUE = 2067

export const foreignKeyFailure = (): StoreError => storeError("FOREIGN KEY constraint failed", FOREIGN_KEY)

/** @param columns `table.column`, several joined by a comma and a space */
export const primaryKeyFailure = (columns: string): StoreError =>
  storeError(`UNIQUE constraint failed: ${columns}`, PRIMARY_KEY)

export const uniqueFailure = (columns: string): StoreError => storeError(`UNIQUE constraint failed: ${columns}`, UNIQUE)
