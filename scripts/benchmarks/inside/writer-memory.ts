/**
 * `writer-memory.ts PATCHES FOLDER`: sends that many patches to an embedded writer as fast as it reads. Prints its resident
 * memory in MB after a tenth of them and after all (Linux's `/proc`, else `ps`).
 */
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"

const [patches = "0", folder = ""] = process.argv.slice(2)
const script = join(import.meta.dirname, "../../../.opencode/baton/live-state/state-writer.ts")
const writer = spawn(process.execPath, ["run", "--no-install", script, folder], {
  env: { ...process.env, BUN_BE_BUN: "1" },
  stdio: ["pipe", "ignore", "inherit"],
})

const residentMB = (): number => {
  const status = `/proc/${writer.pid}/status`
  const kilobytes = existsSync(status)
    ? /VmRSS:\s+(\d+)/.exec(readFileSync(status, "utf8"))?.[1]
    : execFileSync("ps", ["-o", "rss=", "-p", String(writer.pid)], { encoding: "utf8" }).trim()
  return Number(kilobytes) / 1_024
}

const send = async (line: unknown): Promise<void> => {
  if (!writer.stdin.write(`${JSON.stringify(line)}\n`)) await once(writer.stdin, "drain")
}

const ts = new Date().toISOString()
await send({ event: "state.snapshot", ts, state: { c2c_session_id: "bench", opencode_pid: process.pid } })
const total = Number(patches)
let early = 0
for (let turn = 1; turn <= total; turn++) {
  await send({
    event: "state.patch",
    ts,
    patch: { agent: { turn_count: turn, last_step: { at: ts, details: { turn } } } },
  })
  if (turn === total / 10) early = residentMB()
}
const late = residentMB()
writer.stdin.end()
await once(writer, "exit")
const kept = JSON.parse(readFileSync(join(folder, ".opencode/state/live/bench.json"), "utf8")).state
if (kept.agent.turn_count !== total)
  throw new Error(`expected turn ${total}, the statefile has ${kept.agent.turn_count}`)
console.log(JSON.stringify({ early, late }))
process.exit(0)
