import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { collectOutput } from "../../test/support/collect-output.ts"
import { findChromium } from "../../test/support/opencode/browser.ts"
import { listenToEvents } from "../../test/support/opencode/event-client.ts"
import { openModelProject } from "../../test/support/opencode/model-project.ts"
import { startObserver } from "../../test/support/opencode/observer.ts"
import { eventually } from "../../test/support/opencode/opencode-server.ts"
import { residentMB } from "./inside/process-memory.ts"
import { INSIDE, readNumbers } from "./project.ts"
import type { Benchmark } from "./results.ts"

const AGENTS = 50
const PATCHES_PER_SECOND = 20
const WINDOW_MS = 5_000
const CPU_PERCENT = 10
const MEMORY_MB = 150
/** A response within this time feels immediate. */
const KEY_MS = 100
const READING_DEADLINE_MS = 60_000
/** Clock ticks per second on Linux, the same for user space on every architecture. */
const TICKS = 100

/** Processor seconds of a process and of the children it has waited for. Linux only. */
const processorSeconds = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS
}

/** Measures the cost of watching 50 agents, and the speed of the page. */
export const measureObserve: Benchmark = async ({ binary, quick, figure }) => {
  const windows = quick ? 2 : 12
  const chromium = findChromium()
  if (!chromium) throw new Error("Chromium is not on this machine: install it, or name it in BATON_CHROMIUM")
  const environment = { BATON_OPENCODE: binary.path, BUN_BE_BUN: "1" }
  await using opened = await openModelProject(binary, undefined, { environment })
  const { project, ledger } = opened
  const taskIDs: string[] = []
  for (let n = 0; n < AGENTS; n++) taskIDs.push(await opened.addTask({ title: `Task ${n}` }))
  const folder = join(project.directory, ".opencode", "state", "live")
  const children: ChildProcess[] = []
  const start = (program: string, ...args: readonly (string | number)[]): ChildProcess => {
    const child = spawn(program, args.map(String), { env: project.environment, stdio: ["ignore", "pipe", "inherit"] })
    children.push(child)
    return child
  }
  try {
    const feed = [join(INSIDE, "feed-statefiles.ts"), folder, AGENTS, PATCHES_PER_SECOND, taskIDs.join(",")]
    start(binary.path, "--no-env-file", "--config=/dev/null", "run", ...feed)
    await eventually("the statefiles", () => existsSync(join(folder, `agent-${AGENTS - 1}.json`)) || undefined)
    const observer = startObserver(project)
    children.push(observer.child)
    const url = await observer.address()
    const isEveryTaskRead = async (): Promise<true | undefined> => {
      const client = await listenToEvents(url)
      const all = await client.agents((agents) => agents.length === AGENTS).finally(client.close)
      return all.agents.every(({ news }) => news !== undefined) || undefined
    }
    await eventually("the first reading of every task", isEveryTaskRead, READING_DEADLINE_MS)
    const page = start("node", join(INSIDE, "watch-page.mjs"), chromium, url, windows, WINDOW_MS)
    const seen = collectOutput(page)
    const ended = once(page, "exit")
    const [cpu, memory]: [number[], number[]] = [[], []]
    for (let window = 0; window < windows; window++) {
      const [before, startedAt] = [processorSeconds(observer.pid), performance.now()]
      await ledger.prog("log", taskIDs[window] ?? "", "A step.")
      await wait(WINDOW_MS - (performance.now() - startedAt))
      cpu.push(((processorSeconds(observer.pid) - before) / (performance.now() - startedAt)) * 100_000)
      memory.push(residentMB(observer.pid))
    }
    const [exitCode] = await ended
    if (exitCode !== 0) throw new Error("the page could not be watched; its message is above")
    const measured = readNumbers(seen.stdout())
    figure("observe.cpu", "the observer and the programs it starts, of one core", "%", cpu, CPU_PERCENT)
    figure("observe.memory", "the observer, resident", "MB", memory, MEMORY_MB)
    figure("observe.key", "the page, from a key to its frame", "ms", measured("key"), KEY_MS)
    figure("observe.paint", "from a statefile's change to the page's frame", "ms", measured("paint"))
    figure("observe.longest", "the page's longest task in 5 s (0: none of 50 ms)", "ms", measured("longest"))
  } finally {
    for (const child of children) child.kill("SIGTERM")
  }
}
