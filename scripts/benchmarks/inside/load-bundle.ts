import { readdirSync } from "node:fs"
import { join } from "node:path"
import type { Hooks, Plugin, PluginInput } from "@opencode-ai/plugin"

const isPlugin = (value: unknown): value is Plugin => typeof value === "function"

/**
 * Loads every plugin of a folder, one after the other.
 *
 * @returns ms from the first import to the last init, and the hooks
 */
export const loadBundle = async (folder: string, input: PluginInput): Promise<{ ms: number; hooks: Hooks[] }> => {
  const files = readdirSync(folder).sort()
  const hooks: Hooks[] = []
  const started = performance.now()
  for (const file of files) {
    const module: object = await import(join(folder, file))
    for (const plugin of Object.values(module).filter(isPlugin)) hooks.push(await plugin(input))
  }
  return { ms: performance.now() - started, hooks }
}

/** A plugin's input with a client that answers at once with empty data; the real client needs a server. */
export const fakeInput = (directory: string): PluginInput => {
  const answer = async () => ({ data: undefined })
  const group = new Proxy({}, { get: () => answer })
  const client = new Proxy({}, { get: () => group })
  const project = { id: "bench", worktree: directory, time: { created: 0 } }
  const input = { client, project, directory, worktree: directory, serverUrl: new URL("http://127.0.0.1"), $: Bun.$ }
  return input as unknown as PluginInput
}

type Shell = PluginInput["$"]

const TASK = {
  ...{ title: "Teach the parser CRLF", status: "in_progress", type: "task", project: "demo", logs: [] },
  description: "Lines may end in CRLF.\nKeep LF as it is.\n".repeat(20),
  definition_of_done: "bun test passes on Windows line ends",
}

/**
 * A shell in which `prog` answers at once and without a process, so that the rest of a hook's time is its own. It recognises
 * `prog` by the arguments, which the bundle's runner passes as one array; other commands run.
 */
export const withLedgerStandIn = (shell: Shell): Shell => {
  const run = (strings: TemplateStringsArray, ...values: Parameters<Shell>[1][]): unknown => {
    const argv = values.flat().map((value) => (typeof value === "string" ? value.replace(/^=/, "") : ""))
    const marker = argv.indexOf("--")
    const command = argv.find((word) => word === "show" || word === "log" || word === "desc")
    if (marker < 0 || command === undefined)
      return shell(strings, ...(values as Parameters<Shell> extends [unknown, ...infer Rest] ? Rest : never))
    const text = command === "show" ? JSON.stringify({ id: argv[marker + 1], ...TASK }) : ""
    const output = Promise.resolve({ exitCode: 0, stdout: Buffer.from(text), stderr: Buffer.alloc(0) })
    const chain = { cwd: () => chain, env: () => chain, quiet: () => chain, nothrow: () => output }
    return chain
  }
  return Object.assign(run, shell) as unknown as Shell
}
