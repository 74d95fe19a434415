import { rmSync } from "node:fs"
import { readdir } from "node:fs/promises"
import { errorCode } from "../host/log.ts"
import type { StateFolder } from "../host/state.ts"
import { isPassID } from "./pass-record.ts"

/** Lists of passes, each a folder with an empty file a pass: passes are found and counted without any being read. */
export type PassIndex = {
  put(passID: string, ...list: string[]): Promise<void>
  drop(passID: string, ...list: string[]): Promise<void>
  /** Oldest first. @throws when they cannot be listed: nobody knows then that there are none */
  ids(...list: string[]): Promise<string[]>
}

/** @param folder the folder of the lists, inside the state folder */
export const createPassIndex = (state: Pick<StateFolder, "path" | "write">, folder: string): PassIndex => ({
  put: (passID, ...list) => state.write(state.path(folder, ...list, passID), "", { isDurable: false }),
  drop: async (passID, ...list) => rmSync(state.path(folder, ...list, passID), { force: true }),
  ids: async (...list) => {
    try {
      return (await readdir(state.path(folder, ...list))).filter(isPassID).sort()
    } catch (error) {
      if (errorCode(error) === "ENOENT") return []
      throw error
    }
  },
})
