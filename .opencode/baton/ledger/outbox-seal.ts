/** Tells the records that this account's Baton wrote in this very folder from files that came there in another way. */
import { existsSync, lstatSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { OUTBOX_FOLDER, RECORD_ENDING } from "../host/project.ts"
import { replaceFile } from "../host/state.ts"
import { sealOf } from "../host/state-mark.ts"
import { readOwnTextSync } from "../host/untrusted.ts"

type Sealed = { readonly createdAt?: unknown; readonly entry?: unknown; readonly seal?: unknown }

/** @param root the state folder. @returns undefined for an account without a key */
export const sealOfRecord = (root: string, { createdAt, entry }: Sealed): string | undefined =>
  sealOf(root, JSON.stringify([createdAt, entry]))

/** Without a key there is nothing to tell them by. @param record as it was read */
export const isSealed = (root: string, record: Sealed): boolean => {
  const seal = sealOfRecord(root, record)
  return seal === undefined || record.seal === seal
}

/** Seals the records of a state that a person trusts. @param root the state folder */
export const sealRecords = async (root: string): Promise<void> => {
  for (const folder of [join(root, OUTBOX_FOLDER), join(root, OUTBOX_FOLDER, "parked")]) {
    const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(RECORD_ENDING)) : []
    for (const path of names.map((name) => join(folder, name))) {
      if (!lstatSync(path).isFile()) continue
      try {
        const record: Sealed = JSON.parse(readOwnTextSync(path))
        if (isSealed(root, record)) continue
        await replaceFile(path, `${JSON.stringify({ ...record, seal: sealOfRecord(root, record) }, undefined, 2)}\n`)
      } catch (error) {
        // A damaged one is parked when it is to be delivered.
        if (!(error instanceof SyntaxError)) throw error
      }
    }
  }
}
