import type { LedgerOptions, RunLedger } from "./ledger-process.ts"

const PROJECT = "demo"

/** Runs ledger commands for a test. */
export const createLedgerDriver = (run: RunLedger) => {
  /** Standard output, without the last line break. @throws when the command fails */
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
    /** The first line of standard error. @throws when the command succeeds */
    fails: async (...args: string[]): Promise<string> => {
      const { exitCode, stdout, stderr } = await run(args)
      if (exitCode !== 1)
        throw new Error(`prog ${args.join(" ")}: expected exit code 1, received ${exitCode}: ${stdout}`)
      return stderr.split("\n")[0] ?? ""
    },
    /** The command's output, parsed as JSON. */
    json: async <Shape>(...args: string[]): Promise<Shape> => JSON.parse(await ok(...args)),
    /** Adds a task to project "demo" and returns its id. */
    task: (title: string, ...flags: string[]) => ok("add", "-p", PROJECT, ...flags, "--", title),
    epic: (title: string, ...flags: string[]) => ok("add", "-e", "-p", PROJECT, ...flags, "--", title),
  }
}

export type LedgerDriver = ReturnType<typeof createLedgerDriver>
