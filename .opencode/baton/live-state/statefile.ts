import { renameSync } from "node:fs"
import { join } from "node:path"
import { createFileLock, type HeldLock } from "../host/file-lock.ts"
import { describeError, isNotFound, type Log } from "../host/log.ts"
import { stateRoot } from "../host/project.ts"
import { replaceFile, type StateFolder } from "../host/state.ts"
import { cutText } from "../host/text.ts"
import { readOwnTextSync } from "../host/untrusted.ts"
import { isObject, type LiveState, type StreamLine } from "./protocol.ts"

export const STATEFILE_ENDING = ".json"
/** Exists beside a statefile while its process runs. */
export const LOCK_ENDING = ".lock"
/** The newest state of this name whose process ended in the middle of work. */
export const CRASHED_ENDING = `-crashed${STATEFILE_ENDING}`

/** The folder of a project's statefiles. */
export const liveFolder = (projectRoot: string): string => join(stateRoot(projectRoot), "live")

const MAX_NAME = 100

/** Tells a state of Baton's own that shows work: a process leaves it so when it is killed or crashes. */
export const isCutOff = (state: unknown): boolean =>
  isObject(state) && isObject(state.extensions) && isObject(state.agent) && state.agent.is_idle === false

/** A safe file name: letters, digits, `.`, `_`, `-`; never hidden, never empty. */
export const statefileName = (sessionID: string): string => {
  const safe = cutText(sessionID.replaceAll(/[^A-Za-z0-9._-]+/g, "-").replace(/^[.-]+/, ""), MAX_NAME)
  return safe === "" ? "session" : safe
}

/** Keeps the newest state for programs outside: in Baton's own file, or through a program of the user's. */
export type StateWriter = {
  /** Takes the next line of the stream. Never throws and never waits. */
  publish(line: StreamLine): void
  /** Writes what is due, within `graceMs`. */
  stop(graceMs: number): Promise<void>
}

type StatefileDeps = {
  readonly state: Pick<StateFolder, "path" | "prepare">
  /** Names the file. */
  readonly sessionID: string
  readonly pid: number
  /** The whole state after the newest line. */
  readonly current: () => LiveState | undefined
  /** The last line, of an agent that ends. */
  readonly end: () => StreamLine | undefined
  readonly log: Log
  readonly retryMs?: number
}

/** Reads the state of a process that has ended: an orderly end would say that nothing is done any more. */
const isCrashed = (path: string, log: Log): boolean => {
  try {
    const { state } = JSON.parse(readOwnTextSync(path))
    return isCutOff(state)
  } catch (error) {
    if (!isNotFound(error)) log.debug("an earlier statefile cannot be read", { path, error: describeError(error) })
    return false
  }
}

const WRITE_INTERVAL_MS = 50
const RETRY_MS = 1_000

/** Writes that wait when the process exits. `opencode run` of 1.2.15 exits without telling its plugins. */
const atExit = new Set<() => void>()
let isListening = false
const runAtExit = (write: () => void): void => {
  atExit.add(write)
  if (isListening) return
  isListening = true
  process.on("exit", () => {
    for (const each of atExit) each()
  })
}

/**
 * Keeps Baton's own statefile: the first change is written at once, further ones every 50 ms, by temporary file and rename, so
 * that a reader sees the old state or the new one. A second process with the same id gets another file. A failed write is tried
 * again every `retryMs`, and logged once.
 */
export const createStatefileWriter = (deps: StatefileDeps): StateWriter => {
  const { state, sessionID, pid, current, end, log, retryMs = RETRY_MS } = deps
  let file: { readonly path: string; readonly lock: HeldLock } | undefined
  let newest: StreamLine | undefined
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> | undefined
  let writtenAt = Number.NEGATIVE_INFINITY
  let lastFailure = ""

  /** @throws the file system's own error, or an error when both names are taken */
  const claim = async (): Promise<NonNullable<typeof file>> => {
    await state.prepare("live")
    const name = statefileName(sessionID)
    for (const candidate of [name, `${name}-${pid}`]) {
      const lock = await createFileLock({ path: state.path("live", `${candidate}${LOCK_ENDING}`) }).tryAcquire()
      if (!lock) continue
      const path = state.path("live", `${candidate}${STATEFILE_ENDING}`)
      if (isCrashed(path, log)) renameSync(path, state.path("live", `${name}${CRASHED_ENDING}`))
      return { path, lock }
    }
    throw new Error(`${name} and ${name}-${pid} are both kept by living processes`)
  }

  /** Everything up to the rename happens before this returns its promise. */
  const replace = (path: string): Promise<void> => {
    if (!newest) return Promise.resolve()
    const { event, ts } = newest
    newest = undefined
    return replaceFile(path, `${JSON.stringify({ event, ts, state: current() })}\n`, { isDurable: false })
  }

  const write = async (): Promise<void> => {
    const due = newest
    if (!due) return
    try {
      file ??= await claim()
      await replace(file.path)
      writtenAt = performance.now()
      if (lastFailure !== "") log.info("the statefile is written again")
      lastFailure = ""
    } catch (error) {
      newest ??= due
      const failure = describeError(error)
      if (failure !== lastFailure) log.warn("the statefile cannot be written: trying again", { reason: failure })
      lastFailure = failure
    }
  }

  const run = (): Promise<void> => {
    writing ??= write().finally(() => {
      writing = undefined
      if (newest) schedule()
    })
    return writing
  }

  const schedule = (): void => {
    if (writing || timer) return
    const waitMs = lastFailure === "" ? writtenAt + WRITE_INTERVAL_MS - performance.now() : retryMs
    if (waitMs <= 0) return void run()
    timer = setTimeout(() => {
      timer = undefined
      void run()
    }, waitMs)
    timer.unref()
  }

  const finish = (): void => {
    if (!file) return
    newest = end() ?? newest
    replace(file.path).catch(() => {})
    void file.lock.release()
  }
  runAtExit(finish)

  return {
    publish: (line) => {
      newest = line
      schedule()
    },
    stop: async () => {
      clearTimeout(timer)
      await writing
      clearTimeout(timer)
      atExit.delete(finish)
      newest = end() ?? newest
      await write()
      await file?.lock.release()
    },
  }
}
