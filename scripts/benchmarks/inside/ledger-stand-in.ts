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

/** The bundle's runner hands the shell one array: a shell script, its parameters, and the program's own arguments. */
const ledgerCall = (values: readonly unknown[]): { command: string; id: string } | undefined => {
  const argv = values.flat().map((value) => String(value).replace(/^=/, ""))
  const marker = argv.indexOf("--")
  const command = argv.find((word) => word === "show" || word === "log" || word === "desc")
  return marker < 0 || command === undefined ? undefined : { command, id: argv[marker + 1] ?? "" }
}

const answer = (text: string) => {
  const output = Promise.resolve({ exitCode: 0, stdout: Buffer.from(text), stderr: Buffer.alloc(0) })
  const chain = { cwd: () => chain, env: () => chain, quiet: () => chain, nothrow: () => output }
  return chain
}

/**
 * A shell in which `prog` answers at once and without a process; everything else runs. What is left of a hook's time is
 * the hook's own.
 */
export const withLedgerStandIn = (shell: Shell): Shell => {
  const run = (strings: TemplateStringsArray, ...values: Parameters<Shell>[1][]): unknown => {
    const call = ledgerCall(values)
    if (call) return answer(call.command === "show" ? JSON.stringify({ id: call.id, ...TASK }) : "")
    return shell(strings, ...(values as Parameters<Shell> extends [unknown, ...infer Rest] ? Rest : never))
  }
  return Object.assign(run, shell) as unknown as Shell
}
