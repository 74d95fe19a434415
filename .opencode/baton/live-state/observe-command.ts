/**
 * `baton observe`. On a terminal it redraws every second until q or Ctrl-C; elsewhere it prints once. With --web it serves a page
 * until it is stopped. Exits with 0, with 1 when the page's port is not available, with 2 for a wrong command line.
 */
import { parseArgs } from "node:util"
import { chooseProject, complain, printJSON, runCommand } from "../host/cli.ts"
import { createObserver } from "./observe/observer.ts"
import { DEFAULT_WIDTH, plain, renderObservation, watchInTerminal } from "./observe/terminal.ts"
import { listProjects } from "./projects.ts"

const MAX_PORT = 65_535

/**
 * Reads the page's port from the options: undefined for no page, 0 for any free one.
 *
 * @throws Error with what was expected and received
 */
const readWebPort = ({
  web,
  port,
  json,
}: {
  web: boolean
  port?: string | undefined
  json: boolean
}): number | undefined => {
  if (web && json) throw new Error("expected --web or --json, received both")
  if (port !== undefined && !web) throw new Error("--port is for the page: expected it together with --web")
  if (!web) return undefined
  if (port === undefined) return 0
  const number = /^\d{1,5}$/.test(port) ? Number(port) : Number.NaN
  if (number >= 1 && number <= MAX_PORT) return number
  throw new Error(`expected --port between 1 and ${MAX_PORT}, received '${port}'`)
}

const parse = (args: readonly string[], here: string) => {
  const options = {
    json: { type: "boolean", default: false },
    web: { type: "boolean", default: false },
    port: { type: "string" },
  } as const
  const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options })
  const folders = positionals.length === 0 ? [undefined] : positionals
  const roots = folders.map((folder) => chooseProject(folder, here))
  return { roots, json: values.json, webPort: readWebPort(values) }
}

const run = async ({ roots, json, webPort }: ReturnType<typeof parse>): Promise<number> => {
  if (webPort !== undefined) {
    const { servePageUntilSignal } = await import("./web/server.ts")
    return servePageUntilSignal({ roots, port: webPort })
  }
  // Messages would disturb the drawing; each is printed once, at the end.
  const problems = new Set<string>()
  const report = (problem: string): void => void problems.add(problem)
  const observer = createObserver(roots, report, () => listProjects(report))
  const look = async () => (await observer.look()).map(({ view }) => view)
  // The second look has the tasks that the first one saw.
  const lookOnce = async () => {
    await observer.look()
    await observer.settled()
    return look()
  }
  if (json) printJSON(await lookOnce())
  else if (process.stdout.isTTY && process.stdin.isTTY) await watchInTerminal(look)
  else {
    const view = { now: new Date(), width: Number(process.env.COLUMNS) || DEFAULT_WIDTH, paint: plain }
    process.stdout.write(renderObservation(await lookOnce(), view))
  }
  observer.close()
  for (const problem of problems) complain(`observe: left out: ${problem}`)
  return 0
}

await runCommand({ name: "observe", parse, projectsOf: ({ roots }) => roots, run })
