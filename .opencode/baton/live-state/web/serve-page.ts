import { randomBytes } from "node:crypto"
import { errorCode } from "../../host/log.ts"
import { watchAgents } from "./agent-watch.ts"
import { createEventStream, type EventStream } from "./event-stream.ts"
import { startPageServer } from "./page-server.ts"

const describeListening = (error: unknown, port: number): string => {
  if (errorCode(error) === "EADDRINUSE")
    return `port ${port} is taken. Name another one with --port, or leave --port out for any that is free`
  if (errorCode(error) === "EACCES") return `port ${port} is not ours to take. Expected one from 1024 on`
  return `127.0.0.1:${port} cannot be listened on: ${error instanceof Error ? error.message : String(error)}`
}

export type ServedPage = { readonly url: string; close(): Promise<void> }

/**
 * Serves the page of the agents of some projects on 127.0.0.1.
 *
 * @param roots absolute paths of the projects
 * @param port 0 for any that is free
 * @param say what the person who started it should know
 * @throws an error in a person's words when the port cannot be had
 */
export const servePage = async ({
  roots,
  port,
  say,
}: {
  roots: readonly string[]
  port: number
  say: (text: string) => void
}): Promise<ServedPage> => {
  let events: EventStream | undefined
  const reported = new Set<string>()
  const observer = watchAgents(roots, {
    onChange: () => events?.publish(),
    report: (problem) => {
      if (!reported.has(problem)) say(`left out until it can be read: ${problem}`)
      reported.add(problem)
    },
  })
  events = createEventStream({ board: observer.board, instance: randomBytes(6).toString("hex"), now: () => Date.now() })
  const stream = events
  try {
    const server = await startPageServer({ port, events: stream })
    return {
      url: `http://127.0.0.1:${server.port}/`,
      close: () => {
        observer.close()
        stream.close()
        return server.close()
      },
    }
  } catch (error) {
    observer.close()
    stream.close()
    throw new Error(describeListening(error, port), { cause: error })
  }
}

/**
 * Serves until SIGINT, SIGTERM or SIGHUP. The address goes to stdout, everything else to stderr.
 *
 * @returns the exit code: 1 when the port cannot be had
 */
export const servePageUntilSignal = async (options: { roots: readonly string[]; port: number }): Promise<number> => {
  const say = (text: string): void => void process.stderr.write(`observe: ${text}\n`)
  const ended = new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => resolve())
  })
  let page: ServedPage
  try {
    page = await servePage({ ...options, say })
  } catch (error) {
    say(error instanceof Error ? error.message : String(error))
    return 1
  }
  // Whoever read the address may have gone.
  process.stdout.on("error", () => {})
  process.stdout.write(`The agents are on ${page.url}\nCtrl-C ends it.\n`)
  await ended
  await page.close()
  return 0
}
