/**
 * `baton state-writer [FOLDER]`: reads the stream of snapshots and patches on stdin and keeps a statefile in FOLDER
 * (default: .opencode/state/live here). Ends when stdin ends. Says on stderr what it could not do.
 */
import { join, resolve } from "node:path"
import { createLineReader } from "./line-reader.ts"
import { EMPTY_REDUCTION, type Reduction, reduceLine } from "./state-reducer.ts"
import { claimStatefile, type Statefile } from "./statefile.ts"

/** Writes are at least this far apart while lines keep coming. */
const WRITE_INTERVAL_MS = 50
const RETRY_MS = 1_000

const say = (text: string): void => void process.stderr.write(`state-writer: ${text}\n`)

const keepStatefile = (folder: string) => {
  let reduction: Reduction = EMPTY_REDUCTION
  let file: Statefile | undefined
  let timer: NodeJS.Timeout | undefined
  let lastWriteAt = Number.NEGATIVE_INFINITY
  let isChanged = false
  let lastFailure = ""

  const write = (): boolean => {
    timer = undefined
    const { envelope } = reduction
    if (!envelope || !isChanged) return true
    try {
      const { c2c_session_id: id, opencode_pid: pid } = envelope.state
      file ??= claimStatefile(folder, typeof id === "string" ? id : "", typeof pid === "number" ? pid : process.ppid)
      file.write(`${JSON.stringify(envelope)}\n`)
      lastWriteAt = performance.now()
      isChanged = false
      if (lastFailure !== "") say("the statefile is written again")
      lastFailure = ""
      return true
    } catch (error) {
      const failure = error instanceof Error ? error.message : String(error)
      if (failure !== lastFailure) say(`the statefile cannot be written, trying again: ${failure}`)
      lastFailure = failure
      timer = setTimeout(write, RETRY_MS)
      return false
    }
  }

  return {
    take: (lines: readonly (string | undefined)[]): void => {
      for (const line of lines) {
        const next = reduceLine(reduction, line)
        if (next.envelope !== reduction.envelope) isChanged = true
        reduction = next
      }
      if (timer || !isChanged) return
      const waitMs = Math.max(0, lastWriteAt + WRITE_INTERVAL_MS - performance.now())
      if (waitMs === 0) write()
      else timer = setTimeout(write, waitMs)
    },
    end: (): void => {
      clearTimeout(timer)
      write()
      clearTimeout(timer)
      file?.release()
      if (reduction.skipped > 0) say(`${reduction.skipped} lines were skipped`)
    },
  }
}

const main = async (folder: string): Promise<void> => {
  const reader = createLineReader()
  const keeper = keepStatefile(folder)
  for await (const chunk of process.stdin) keeper.take(reader.push(chunk as Uint8Array))
  keeper.take(reader.end())
  keeper.end()
}

// The terminal's Ctrl-C is for OpenCode; this process ends when its stdin does.
process.on("SIGINT", () => {})
const [, , here = process.cwd(), folder] = process.argv
await main(folder === undefined ? join(here, ".opencode", "state", "live") : resolve(here, folder))
