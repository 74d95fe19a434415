import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { findChromium } from "../../test/support/browser.ts"
import { listenToEvents } from "../../test/support/event-client.ts"
import { BOTH_ENDS, type OpenCodeBinary } from "../../test/support/opencode-binary.ts"
import { eventually } from "../../test/support/opencode-server.ts"
import { openTestLedger } from "../../test/support/test-ledger.ts"
import { type BenchProject, withBenchProject } from "./bench-project.ts"
import type { Benchmark } from "./benchmark.ts"
import { type Figure, toFigure } from "./results.ts"
import { numbersIn } from "./run-as-bun.ts"

const AGENTS = 50
const PATCHES_PER_SECOND = 20
const WINDOW_MS = 5_000
const CPU_PERCENT = 10
const MEMORY_MB = 150
/** What a person takes for at once. */
const KEY_MS = 100
const READING_DEADLINE_MS = 60_000
const FEEDER = join(import.meta.dirname, "inside", "feed-statefiles.ts")
const PAGE = join(import.meta.dirname, "inside", "watch-page.mjs")
/** Linux's clock ticks a second, the same on every architecture it tells user space. */
const TICKS = 100
const KIB_IN_MB = 1_000 / 1.024

/** Seconds of processor time that a process and the children it has waited for have taken. Linux alone. */
const processorSeconds = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  const [user, system, childUser, childSystem] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 15)
  return [user, system, childUser, childSystem].reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS
}

const residentMegabytes = (pid: number): number => {
  const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]
  if (kibibytes === undefined) throw new Error(`expected VmRSS of process ${pid}`)
  return Number(kibibytes) / KIB_IN_MB
}

const output = (child: ChildProcess): (() => string) => {
  let text = ""
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk
  })
  return () => text
}

const ended = (child: ChildProcess): Promise<number | null> => new Promise((resolve) => child.on("exit", resolve))

const areAllTasksRead = async (url: string): Promise<true | undefined> => {
  const client = await listenToEvents(url)
  const all = await client.agents((agents) => agents.length === AGENTS).finally(client.close)
  return all.agents.every(({ news }) => news !== undefined) || undefined
}

/** What the observer takes, a window at a time, while a page is open; the ledger gets an entry in each. */
const sample = async (pid: number, windows: number, logEntry: (window: number) => Promise<unknown>) => {
  const [cpu, memory]: [number[], number[]] = [[], []]
  for (let window = 0; window < windows; window++) {
    const [before, startedAt] = [processorSeconds(pid), performance.now()]
    await logEntry(window)
    await new Promise((resolve) => setTimeout(resolve, WINDOW_MS - (performance.now() - startedAt)))
    cpu.push(((processorSeconds(pid) - before) / (performance.now() - startedAt)) * 100_000)
    memory.push(residentMegabytes(pid))
  }
  return { cpu, memory }
}

const measure = async ({ binary, project }: BenchProject, chromium: string, windows: number) => {
  const ledger = openTestLedger(project, binary)
  const taskIDs: string[] = []
  for (let n = 0; n < AGENTS; n++)
    taskIDs.push(await ledger.addTask({ title: `Task ${n}`, specification: "Measure.", definitionOfDone: "Measured." }))
  const folder = join(project.directory, ".opencode", "state", "live")
  const runtime = ["--no-env-file", "--config=/dev/null", "run"]
  const children: ChildProcess[] = []
  const start = (program: string, args: readonly string[], environment: Record<string, string>): ChildProcess => {
    const env = { ...project.environment, ...environment }
    const child = spawn(program, args, { cwd: project.directory, env, stdio: ["ignore", "pipe", "inherit"] })
    children.push(child)
    return child
  }
  try {
    const feed = [FEEDER, folder, String(AGENTS), String(PATCHES_PER_SECOND), taskIDs.join(",")]
    start(binary.path, [...runtime, ...feed], { BUN_BE_BUN: "1" })
    await eventually("the statefiles", () => existsSync(join(folder, `agent-${AGENTS - 1}.json`)) || undefined)
    const baton = join(project.directory, ".opencode", "baton", "bin", "baton")
    const observer = start(baton, ["observe", "--web"], { BATON_OPENCODE: binary.path })
    const said = output(observer)
    const url = await eventually("the page's address", () => /http:\/\/[\d.:]+\//.exec(said())?.[0])
    await eventually("the first reading of every task", () => areAllTasksRead(url), READING_DEADLINE_MS)
    const page = start("node", [PAGE, chromium, url, String(windows), String(WINDOW_MS)], {})
    const seen = output(page)
    const pageEnded = ended(page)
    const costs = await sample(observer.pid ?? -1, windows, (n) => ledger.prog("log", taskIDs[n] ?? "", "A step."))
    if ((await pageEnded) !== 0) throw new Error("the page could not be watched; its message is above")
    const document: unknown = JSON.parse(seen())
    const read = (field: string): number[] => numbersIn(document, field)
    return { ...costs, paint: read("paint"), key: read("key"), longest: read("longest") }
  } finally {
    for (const child of children) child.kill("SIGTERM")
  }
}

const toFigures = (binary: OpenCodeBinary, values: Awaited<ReturnType<typeof measure>>): Figure[] => {
  const { version } = binary
  const ms = { version, unit: "ms" } as const
  return [
    toFigure(
      {
        id: "observe.cpu",
        what: "the observer and the programs it starts, of one core",
        version,
        unit: "%",
        below: CPU_PERCENT,
      },
      values.cpu,
    ),
    toFigure(
      { id: "observe.memory", what: "the observer, resident", version, unit: "MB", below: MEMORY_MB },
      values.memory,
    ),
    toFigure({ id: "observe.key", what: "the page, from a key to its frame", ...ms, below: KEY_MS }, values.key),
    toFigure({ id: "observe.paint", what: "from a statefile's change to the page's frame", ...ms }, values.paint),
    toFigure(
      { id: "observe.longest", what: "the page's longest task in 5 s (0: none of 50 ms)", ...ms },
      values.longest,
    ),
  ]
}

/** What watching 50 agents costs, and whether the page keeps up. */
export const measureObserve: Benchmark = async ({ quick, say }) => {
  const chromium = findChromium()
  if (!chromium) throw new Error("Chromium is not on this machine: install it, or name it in BATON_CHROMIUM")
  const windows = quick ? 2 : 12
  const figures: Figure[] = []
  for (const binary of BOTH_ENDS) {
    say(
      `observe on ${binary.version}: ${AGENTS} agents, ${PATCHES_PER_SECOND} patches a second each, ${windows} windows`,
    )
    const values = await withBenchProject(
      binary,
      () => ({ text: "" }),
      {},
      (opened) => measure(opened, chromium, windows),
    )
    figures.push(...toFigures(binary, values))
  }
  return { figures }
}
