/**
 * `baton state-writer [FOLDER]`: reads the stream of snapshots and patches on stdin and keeps a statefile in FOLDER (default:
 * .opencode/state/live here). Ends when stdin ends; reports failures on stderr.
 */
import { join, resolve } from "node:path"
import { describeError } from "../host/log.ts"
import {
  claimStatefile,
  createLineReader,
  EMPTY_REDUCTION,
  type Reduction,
  reduceLine,
  type Statefile,
} from "./statefile.ts"

const WRITE_INTERVAL_MS = 50
const RETRY_MS = 1_000

const say = (text: string): void => void process.stderr.write(`state-writer: ${text}\n`)

const keepStatefile = (folder: string) => {
  let reduction: Reduction = EMPTY_REDUCTION
  let file: Statefile | undefined
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> | undefined
  let lastWriteAt = Number.NEGATIVE_INFINITY
  let isChanged = false
  let lastFailure = ""

  const write = async (): Promise<void> => {
    const { envelope } = reduction
    if (!envelope || !isChanged) return
    isChanged = false
    try {
      const { c2c_session_id: id, opencode_pid: pid } = envelope.state
      file ??= await claimStatefile(
        folder,
        typeof id === "string" ? id : "",
        typeof pid === "number" ? pid : process.ppid,
      )
      await file.write(`${JSON.stringify(envelope)}\n`)
      lastWriteAt = performance.now()
      if (lastFailure !== "") say("the statefile is written again")
      lastFailure = ""
    } catch (error) {
      isChanged = true
      const failure = describeError(error)
      if (failure !== lastFailure) say(`the statefile cannot be written, trying again: ${failure}`)
      lastFailure = failure
    }
  }

  /** One write at a time; lines that arrive meanwhile are in the next one. */
  const schedule = (): void => {
    if (!isChanged || writing || timer) return
    const waitMs = lastFailure === "" ? Math.max(0, lastWriteAt + WRITE_INTERVAL_MS - performance.now()) : RETRY_MS
    timer = setTimeout(() => {
      timer = undefined
      writing = write().then(() => {
        writing = undefined
        schedule()
      })
    }, waitMs)
  }

  return {
    take: (lines: readonly (string | undefined)[]): void => {
      for (const line of lines) {
        const next = reduceLine(reduction, line)
        if (next.envelope !== reduction.envelope) isChanged = true
        reduction = next
      }
      schedule()
    },
    end: async (): Promise<void> => {
      clearTimeout(timer)
      await writing
      clearTimeout(timer)
      await write()
      await file?.release()
      if (reduction.skipped > 0) say(`${reduction.skipped} lines were skipped`)
    },
  }
}

const main = async (folder: string): Promise<void> => {
  const reader = createLineReader()
  const keeper = keepStatefile(folder)
  for await (const chunk of process.stdin) keeper.take(reader.push(chunk as Uint8Array))
  keeper.take(reader.end())
  await keeper.end()
}

// The terminal's Ctrl-C is meant for OpenCode; this process ends when its stdin does.
process.on("SIGINT", () => {})
const [, , here = process.cwd(), folder] = process.argv
await main(folder === undefined ? join(here, ".opencode", "state", "live") : resolve(here, folder))
