import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { createFileLock } from "../host/file-lock.ts"
import { replaceFile } from "../host/state.ts"
import { isObject, type JSONValue, mergePatch } from "./protocol.ts"

/** A line of at most this many bytes is read; a longer one is skipped as a whole. */
const MAX_LINE_BYTES = 1024 * 1024

type LineReader = {
  /** @returns the lines that this chunk ends, without their line ends; undefined stands for one that cannot be read */
  push(chunk: Uint8Array): (string | undefined)[]
  /** What stands behind the last line end. */
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
      // A chunk may be reused by whoever reads.
      keep(chunk.slice(start))
      return lines.filter((line) => line === undefined || line.trim() !== "")
    },
    end: () => (size > 0 ? [finish()] : []),
  }
}

type JSONObject = { readonly [key: string]: JSONValue }

/** What the statefile holds: the last line's event and time, and the whole state. */
type Envelope = { readonly event: string; readonly ts: string; readonly state: JSONObject }

export type Reduction = {
  readonly envelope?: Envelope
  /** Lines that could not be used. */
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

/** Never back: two lines may carry one time, and a clock may be set. */
const later = (ts: string, before: string | undefined): string => (before !== undefined && before > ts ? before : ts)

/**
 * Takes one line of the stream in. Skipped and counted: what is not JSON or not an object, an unknown event, a patch before
 * any snapshot, one that is nested too deep, and a line that could not be read at all (undefined).
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
/** Beside a statefile for as long as its writer lives. */
export const LOCK_ENDING = ".lock"

/** A name that is a file's and nothing else: letters, digits, `.`, `_`, `-`; never hidden, never empty. */
export const statefileName = (sessionID: string): string => {
  const safe = sessionID
    .replaceAll(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[.-]+/, "")
    .slice(0, MAX_NAME)
  return safe === "" ? "session" : safe
}

export type Statefile = {
  readonly path: string
  /** A reader sees the old state or the new one, never a half; nobody else can read it. @throws the file system's own error */
  write(text: string): Promise<void>
  release(): Promise<void>
}

/**
 * The file of one agent. Who comes second while the first writer lives gets a file of its own, so that two processes with
 * one id never write over each other.
 *
 * @param pid of the process that the state tells of
 * @throws the file system's own error, or when both names are taken
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
