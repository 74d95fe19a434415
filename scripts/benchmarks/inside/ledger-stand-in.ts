import type { PluginInput } from "@opencode-ai/plugin"

type Shell = PluginInput["$"]

const TASK = {
  title: "Teach the parser CRLF",
  status: "in_progress",
  type: "task",
  project: "demo",
  description: "Lines may end in CRLF.\nKeep LF as it is.\n".repeat(20),
  definition_of_done: "bun test passes on Windows line ends",
  logs: [],
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
