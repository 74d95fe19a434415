import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { createFileLock } from "../host/file-lock.ts"
import { replaceFile } from "../host/state.ts"
import { isObject, type JSONValue, mergePatch } from "./protocol.ts"

/** Longest line that is read, in bytes; a longer one is skipped as a whole. */
const MAX_LINE_BYTES = 1024 * 1024

type LineReader = {
  /** @returns the lines completed by this chunk, without line ends; undefined for one that cannot be read */
  push(chunk: Uint8Array): (string | undefined)[]
  /** Returns the text after the last line end. */
  end(): (string | undefined)[]
}

const LINE_END = 0x0a

/** Splits a stream of bytes into UTF-8 lines, in bounded memory. An oversized line and invalid UTF-8 give undefined. */
export const createLineReader = (maxBytes = MAX_LINE_BYTES): LineReader => {
  const decoder = new TextDecoder("utf-8", { fatal: true })
  let chunks: Uint8Array[] = []
  let size = 0
  let isOversized = false

  const decode = (bytes: Uint8Array): string | undefined => {
    try {
      return decoder.decode(bytes)
    } catch (error) {
      if (error instanceof TypeError) return undefined
      throw error
    }
  }

  const finish = (): string | undefined => {
    const line = isOversized ? undefined : decode(Buffer.concat(chunks))
    chunks = []
    size = 0
    isOversized = false
    return line
  }

  const keep = (piece: Uint8Array): void => {
    size += piece.length
    isOversized ||= size > maxBytes
    if (isOversized) chunks = []
    else if (piece.length > 0) chunks.push(piece)
  }

  return {
    push: (chunk) => {
      const lines: (string | undefined)[] = []
      let start = 0
      for (let at = chunk.indexOf(LINE_END); at >= 0; at = chunk.indexOf(LINE_END, start)) {
        keep(chunk.subarray(start, at))
        lines.push(finish())
        start = at + 1
      }
      // The caller may reuse the chunk's memory.
      keep(chunk.slice(start))
      return lines.filter((line) => line === undefined || line.trim() !== "")
    },
    end: () => (size > 0 ? [finish()] : []),
  }
}

type JSONObject = { readonly [key: string]: JSONValue }

/** The statefile's content: event and time of the last line, and the whole state. */
type Envelope = { readonly event: string; readonly ts: string; readonly state: JSONObject }

export type Reduction = {
  readonly envelope?: Envelope
  readonly skipped: number
}

export const EMPTY_REDUCTION: Reduction = { skipped: 0 }

const MAX_CLOCK_TEXT = 40

const parse = (line: string): JSONObject | undefined => {
  try {
    const value: unknown = JSON.parse(line)
    return isObject(value) ? value : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Never goes back: two lines may have the same time, and a clock may be set. */
const later = (ts: string, before: string | undefined): string => (before !== undefined && before > ts ? before : ts)

/**
 * Applies one line of the stream. Skips and counts: anything but a JSON object, an unknown event, a patch before any snapshot,
 * one nested too deep, and a line that could not be read (undefined).
 */
export const reduceLine = (reduction: Reduction, line: string | undefined): Reduction => {
  const skip: Reduction = { ...reduction, skipped: reduction.skipped + 1 }
  const parsed = line === undefined ? undefined : parse(line)
  const ts = parsed?.ts
  if (!parsed || typeof ts !== "string" || ts.length > MAX_CLOCK_TEXT) return skip
  const before = reduction.envelope
  if (parsed.event === "state.snapshot" && isObject(parsed.state))
    return { ...reduction, envelope: { event: parsed.event, ts: later(ts, before?.ts), state: parsed.state } }
  if (parsed.event !== "state.patch" || !isObject(parsed.patch) || !before) return skip
  try {
    const state = mergePatch(before.state, parsed.patch)
    return { ...reduction, envelope: { event: parsed.event, ts: later(ts, before.ts), state } }
  } catch (error) {
    if (error instanceof RangeError) return skip
    throw error
  }
}

const MAX_NAME = 100
export const STATEFILE_ENDING = ".json"
/** Exists beside a statefile while its writer runs. */
export const LOCK_ENDING = ".lock"

/** A safe file name: letters, digits, `.`, `_`, `-`; never hidden, never empty. */
export const statefileName = (sessionID: string): string => {
  const safe = sessionID
    .replaceAll(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[.-]+/, "")
    .slice(0, MAX_NAME)
  return safe === "" ? "session" : safe
}

export type Statefile = {
  readonly path: string
  /** A reader sees the old state or the new one, and only its owner can read it. @throws the file system's own error */
  write(text: string): Promise<void>
  release(): Promise<void>
}

/**
 * Claims the file of one agent. A second writer with the same id gets another file while the first runs, so that two processes
 * never overwrite each other.
 *
 * @param pid the process that the state describes
 * @throws the file system's own error, or an error when both names are taken
 */
export const claimStatefile = async (folder: string, sessionID: string, pid: number): Promise<Statefile> => {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const name = statefileName(sessionID)
  for (const candidate of [name, `${name}-${pid}`]) {
    const lock = await createFileLock({ path: join(folder, `${candidate}${LOCK_ENDING}`) }).tryAcquire()
    if (!lock) continue
    const path = join(folder, `${candidate}${STATEFILE_ENDING}`)
    return {
      path,
      write: (text) => replaceFile(path, text, { mode: 0o600, isDurable: false }),
      release: () => lock.release(),
    }
  }
  throw new Error(`${name} and ${name}-${pid} are both kept by living writers`)
}
