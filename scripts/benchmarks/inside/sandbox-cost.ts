/**
 * `sandbox-cost.ts FOLDER ROUNDS`: of a pass that writes one file, the ms until its sandbox is begun, until a tool is let in, and of
 * storing the changes; and the longest time that OpenCode's thread was held meanwhile, beside the same without a pass,
 * for a second at most.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { createPassID } from "../../../.opencode/baton/pass-over/store/record.ts"
import { openStoredPasses } from "../../../.opencode/baton/pass-over/store/recover.ts"

const [directory = "", rounds = ""] = process.argv.slice(2)
const log = { debug: () => {}, warn: (message: string, extra?: object) => console.error(message, extra) }
const state = createStateFolder(directory)
const { owners, sandboxes } = openStoredPasses({ projectRoot: directory, directory, state, log })

const TICK_MS = 1
const LONGEST_IDLE_MS = 1_000
/** Comes back every millisecond, where the thread lets it. @returns the longest time beyond that, at the call */
const watchThread = (): (() => number) => {
  let [held, last] = [0, performance.now()]
  const timer = setInterval(() => {
    const now = performance.now()
    held = Math.max(held, now - last - TICK_MS)
    last = now
  }, TICK_MS)
  return () => {
    clearInterval(timer)
    return Math.max(held, performance.now() - last - TICK_MS)
  }
}

const values = { begun: [], ready: [], stored: [], held: [], idle: [] } as Record<string, number[]>
for (let round = 0; round < Number(rounds); round++) {
  const id = createPassID(new Date(), `${round}`.padStart(4, "0"))
  await owners.claim(id)
  const [held, started] = [watchThread(), performance.now()]
  const made = await sandboxes.create(id, { canModify: true, parent: undefined })
  const begun = performance.now()
  const missing = await sandboxes.ready(id)
  const ready = performance.now()
  if (made.kind === "refused" || missing) throw new Error(JSON.stringify([made, missing]))
  writeFileSync(join(made.sandbox ?? "", "written.txt"), `${round}\n`)
  const written = performance.now()
  const changes = await sandboxes.collect(id)
  if (changes.kind === "refused" || changes.modifications.length !== 1) throw new Error(JSON.stringify(changes))
  const stored = performance.now()
  values.held?.push(held())
  await owners.release(id)
  await sandboxes.sweep()
  const idle = watchThread()
  await wait(Math.min(stored - started, LONGEST_IDLE_MS))
  values.idle?.push(idle())
  values.begun?.push(begun - started)
  values.ready?.push(ready - started)
  values.stored?.push(stored - written)
}
console.log(JSON.stringify(values))
