/**
 * `baton observe`, started by the launcher: argument 1 is the folder the user is in, the user's own arguments follow.
 * On a terminal it stays and draws anew each second until q or Ctrl-C; elsewhere it prints once.
 */
import { existsSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { parseArgs, styleText } from "node:util"
import { createProcessRunner } from "../host/process.ts"
import { findNearestProject } from "../host/project-root.ts"
import { createStateFolder } from "../host/state-folder.ts"
import { createLedger } from "../ledger/client.ts"
import { splitHandoff } from "../ledger/description.ts"
import { type AgentView, type TaskNews, taskOf, toAgentView } from "./agent-view.ts"
import { type Paint, renderObservation } from "./observe-text.ts"
import { listStates } from "./statefiles.ts"

const USAGE_EXIT_CODE = 2
const REDRAW_MS = 1_000
/** The ledger is a program; it is asked less often than the statefiles are read. */
const NEWS_MS = 5_000
const DEFAULT_WIDTH = 100
const ENTER_SCREEN = "\u001b[?1049h\u001b[?25l"
const LEAVE_SCREEN = "\u001b[?25h\u001b[?1049l"
const HOME_AND_CLEAR = "\u001b[H\u001b[2J"

const style =
  (name: "bold" | "dim" | "red" | "green" | "yellow" | "cyan", colour: boolean) =>
  (text: string): string =>
    colour ? styleText(name, text, { validateStream: false }) : text

const createPaint = (colour: boolean): Paint => ({
  bold: style("bold", colour),
  dim: style("dim", colour),
  red: style("red", colour),
  green: style("green", colour),
  yellow: style("yellow", colour),
  cyan: style("cyan", colour),
})

/** What the ledger says of tasks, asked anew every few seconds and never waited for twice. */
const createNews = (root: string) => {
  const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  const ledger = createLedger({
    run: createProcessRunner({ shell: undefined }),
    directory: root,
    log: silent,
    state: createStateFolder(root),
    bundleRoot: dirname(import.meta.dirname),
  })
  const known = new Map<string, { at: number; news: TaskNews | undefined }>()
  return async (taskID: string): Promise<TaskNews | undefined> => {
    const kept = known.get(taskID)
    if (kept && performance.now() - kept.at < NEWS_MS) return kept.news
    const read = await ledger.readTask(taskID)
    const handoff = read.kind === "found" ? splitHandoff(read.task.description).handoff : undefined
    const news =
      read.kind === "found"
        ? {
            title: read.task.title,
            status: read.task.status,
            log: read.task.logs,
            ...(handoff === undefined ? {} : { handoff: handoff.split("\n")[0]?.replace(/^#+ */, "") ?? "" }),
          }
        : kept?.news
    known.set(taskID, { at: performance.now(), news })
    return news
  }
}

const createObserver = (roots: readonly string[]) => {
  const projects = roots.map((root) => ({ root, name: basename(root), news: createNews(root) }))
  return async (): Promise<AgentView[]> => {
    const views = await Promise.all(
      projects.map(async ({ root, name, news }) => {
        const states = await listStates(join(root, ".opencode", "state", "live"))
        return Promise.all(
          states.map(async (found) => {
            const task = taskOf(found)
            return toAgentView(name, found, task ? await news(task.id) : undefined)
          }),
        )
      }),
    )
    return views.flat()
  }
}

/** Draws until q, Ctrl-C or the end of the terminal. */
const watch = async (observe: () => Promise<AgentView[]>): Promise<void> => {
  const { stdin, stdout } = process
  const paint = createPaint(!process.env.NO_COLOR)
  let isOver = false
  let wake = (): void => {}
  const finish = (): void => {
    isOver = true
    wake()
  }
  stdin.setRawMode?.(true)
  stdin.on("data", (key: Buffer) => {
    if (["q", "\u0003", "\u0004"].includes(key.toString())) finish()
  })
  stdin.on("end", finish)
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, finish)
  stdout.on("resize", () => wake())
  stdout.write(ENTER_SCREEN)
  try {
    while (!isOver) {
      const text = renderObservation(await observe(), {
        now: new Date(),
        width: stdout.columns ?? DEFAULT_WIDTH,
        paint,
      })
      const lines = text.split("\n").slice(0, Math.max((stdout.rows ?? 40) - 2, 1))
      stdout.write(`${HOME_AND_CLEAR}${lines.join("\r\n")}\r\n${paint.dim("q ends")}`)
      await new Promise<void>((resolve) => {
        wake = resolve
        setTimeout(resolve, REDRAW_MS)
      })
    }
  } finally {
    stdout.write(LEAVE_SCREEN)
    stdin.setRawMode?.(false)
  }
}

const main = async (here: string, args: readonly string[]): Promise<void> => {
  let roots: string[]
  let json: boolean
  try {
    const options = { json: { type: "boolean", default: false } } as const
    const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options })
    json = values.json
    roots = positionals.length === 0 ? [findNearestProject(here)] : positionals.map((folder) => resolve(here, folder))
    const missing = roots.find((root) => !existsSync(root))
    if (missing !== undefined) throw new Error(`expected a project folder, received '${missing}', which is not there`)
  } catch (error) {
    process.stderr.write(
      `observe: ${error instanceof Error ? error.message : String(error)}\nTry: baton observe --help\n`,
    )
    process.exitCode = USAGE_EXIT_CODE
    return
  }
  const observe = createObserver(roots)
  if (json) process.stdout.write(`${JSON.stringify(await observe(), null, 2)}\n`)
  else if (process.stdout.isTTY && process.stdin.isTTY) await watch(observe)
  else {
    const view = { now: new Date(), width: Number(process.env.COLUMNS) || DEFAULT_WIDTH, paint: createPaint(false) }
    process.stdout.write(renderObservation(await observe(), view))
  }
}

const [, , here = process.cwd(), ...args] = process.argv
await main(here, args)
// A reader that went away (`| head`) is no fault of ours; what was written has to leave before the end.
process.stdout.on("error", () => process.exit())
process.stdout.write("", () => process.exit())
