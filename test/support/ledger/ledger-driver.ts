import type { LedgerOptions, RunLedger } from "./ledger-process.ts"

/** Runs ledger commands for a test. */
export type LedgerDriver = {
  readonly run: RunLedger
  /** Standard output, without the last line break. @throws when the command fails */
  ok(...args: string[]): Promise<string>
  okWith(options: LedgerOptions, ...args: string[]): Promise<string>
  /** The first line of standard error. @throws when the command succeeds */
  fails(...args: string[]): Promise<string>
  /** The command's output, parsed as JSON. */
  json<Shape>(...args: string[]): Promise<Shape>
  /** Adds a task to project "demo" and returns its id. */
  task(title: string, ...flags: string[]): Promise<string>
  epic(title: string, ...flags: string[]): Promise<string>
}

export const PROJECT = "demo"

export const createLedgerDriver = (run: RunLedger): LedgerDriver => {
  const okWith = async (options: LedgerOptions, ...args: string[]): Promise<string> => {
    const { exitCode, stdout, stderr } = await run(args, options)
    if (exitCode !== 0) throw new Error(`prog ${args.join(" ")}: expected exit code 0, received ${exitCode}: ${stderr}`)
    return stdout.replace(/\n$/, "")
  }
  const ok = (...args: string[]): Promise<string> => okWith({}, ...args)
  return {
    run,
    ok,
    okWith,
    fails: async (...args) => {
      const { exitCode, stdout, stderr } = await run(args)
      if (exitCode !== 1)
        throw new Error(`prog ${args.join(" ")}: expected exit code 1, received ${exitCode}: ${stdout}`)
      return stderr.split("\n")[0] ?? ""
    },
    json: async (...args) => JSON.parse(await ok(...args)),
    task: (title, ...flags) => ok("add", "-p", PROJECT, ...flags, "--", title),
    epic: (title, ...flags) => ok("add", "-e", "-p", PROJECT, ...flags, "--", title),
  }
}
