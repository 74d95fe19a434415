import { readFile, rm } from "node:fs/promises"
import type { ZodType } from "zod"
import { isAbsent } from "./error-code.ts"
import { describeError, type Log } from "./log.ts"
import { loadZod, type Zod } from "./schema.ts"
import type { StateFolder } from "./state-folder.ts"

/** One JSON file a session, under `.opencode/state/<folder>/<sessionID>.json`. No call throws. */
export type SessionStore<T> = {
  /** The stored value; undefined when there is none or when it cannot be read (which is logged). */
  read(sessionID: string): Promise<T | undefined>
  /** @returns whether it is on disk */
  write(sessionID: string, value: T): Promise<boolean>
  remove(sessionID: string): Promise<void>
}

/** OpenCode's ids are letters, digits and underscores; anything else must not become a path. */
const isFileName = (sessionID: string): boolean => /^[A-Za-z0-9_-]{1,128}$/.test(sessionID)

export const createSessionStore = <T>(deps: {
  state: StateFolder
  folder: string
  schema: (z: Zod) => ZodType<T>
  log: Log
}): SessionStore<T> => {
  const { state, folder, schema, log } = deps
  const pathOf = (sessionID: string) => state.path(folder, `${sessionID}.json`)
  return {
    read: async (sessionID) => {
      if (!isFileName(sessionID)) return undefined
      const path = pathOf(sessionID)
      try {
        const text = await readFile(path, "utf8")
        return schema(await loadZod()).parse(JSON.parse(text))
      } catch (error) {
        if (!isAbsent(error))
          log.warn("stored state is unusable and ignored", { path, sessionID, error: describeError(error) })
        return undefined
      }
    },
    write: async (sessionID, value) => {
      if (!isFileName(sessionID)) return false
      const path = pathOf(sessionID)
      try {
        await state.write(path, `${JSON.stringify(value)}\n`)
        return true
      } catch (error) {
        log.warn("state could not be stored", { path, sessionID, error: describeError(error) })
        return false
      }
    },
    remove: async (sessionID) => {
      if (!isFileName(sessionID)) return
      try {
        await rm(pathOf(sessionID), { force: true })
      } catch (error) {
        log.warn("stored state could not be removed", {
          path: pathOf(sessionID),
          sessionID,
          error: describeError(error),
        })
      }
    },
  }
}
