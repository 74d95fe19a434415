import { spawn } from "node:child_process"
import { createOpencodeClient, type OpencodeClient } from "@opencode-ai/sdk/client"
import { isNotFound } from "../../../.opencode/baton/host/log.ts"
import { createClient2, PASSWORD } from "./client-2.ts"
import { deadline } from "./deadline.ts"
import { isLine2, type OpenCodeBinary } from "./opencode-binary.ts"
import type { TestProject } from "./test-project.ts"

export type TestServer = {
  readonly client: OpencodeClient
  /** `http://127.0.0.1:PORT` */
  readonly url: string
  readonly pid: number
  stop(): Promise<void>
}

const START_DEADLINE_MS = 60_000
const STOP_DEADLINE_MS = 5_000

/** A client of an `opencode serve` of either line. */
export const connect = (binary: OpenCodeBinary, baseUrl: string, directory: string): OpencodeClient =>
  isLine2(binary) ? createClient2(baseUrl, directory) : createOpencodeClient({ baseUrl, directory })

/** Starts `opencode serve` on a free loopback port, with a client for the project. */
export const startServer = (
  binary: OpenCodeBinary,
  project: Pick<TestProject, "directory" | "environment">,
): Promise<TestServer> =>
  new Promise((resolve, reject) => {
    const child = spawn(binary.path, ["serve", "--hostname", "127.0.0.1", "--port", "0"], {
      cwd: project.directory,
      env: { ...project.environment, ...(isLine2(binary) ? { OPENCODE_PASSWORD: PASSWORD } : {}) },
      stdio: ["ignore", "pipe", "pipe"],
    })
    const exited = new Promise<void>((done) => child.on("exit", () => done()))
    let output = ""
    const startMs = deadline(START_DEADLINE_MS)
    const timer = setTimeout(() => {
      child.kill("SIGKILL")
      reject(new Error(`opencode serve did not start within ${startMs} ms: ${output}`))
    }, startMs)
    const stop = async (): Promise<void> => {
      child.kill("SIGTERM")
      const killer = setTimeout(() => child.kill("SIGKILL"), deadline(STOP_DEADLINE_MS))
      await exited
      clearTimeout(killer)
    }
    const read = (text: string): void => {
      output += text
      const baseUrl = /listening on (http:\/\/[\w.:]+)/.exec(output)?.[1]
      if (!baseUrl) return
      clearTimeout(timer)
      resolve({ client: connect(binary, baseUrl, project.directory), url: baseUrl, pid: child.pid ?? -1, stop })
    }
    child.stdout.setEncoding("utf8").on("data", read)
    child.stderr.setEncoding("utf8").on("data", read)
    child.on("error", reject)
  })

/** Ends the instance of the client's project, as if its OpenCode had ended. */
export const endInstance = async (client: OpencodeClient): Promise<void> => {
  const { error } = await client.instance.dispose()
  if (error) throw new Error(`the instance did not end: ${JSON.stringify(error)}`)
}

/**
 * Polls every `everyMs` until `condition` returns a value; fails at the deadline, which is later on a slow machine. A file that is
 * not there is looked for again: it may be replaced or removed behind the listing of its folder.
 */
export const eventually = async <T>(
  what: string,
  condition: () => Promise<T | undefined> | T | undefined,
  deadlineMs = 45_000,
  everyMs = 25,
): Promise<T> => {
  const mostMs = deadline(deadlineMs)
  const over = performance.now() + mostMs
  for (;;) {
    let cause: unknown
    try {
      const value = await condition()
      if (value !== undefined) return value
    } catch (error) {
      if (!isNotFound(error)) throw error
      cause = error
    }
    if (performance.now() > over) throw new Error(`${what} did not happen within ${mostMs} ms`, { cause })
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}
