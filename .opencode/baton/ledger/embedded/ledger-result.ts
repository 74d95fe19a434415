/** What a command line ends with. */
export type LedgerResult = { readonly exitCode: number; readonly stdout: string; readonly stderr: string }

export const succeed = (stdout: string): LedgerResult => ({ exitCode: 0, stdout, stderr: "" })

/** prog prints a failure twice, by cobra and by its own main; readers look at the first line. */
export const fail = (message: string, usage: string): LedgerResult => ({
  exitCode: 1,
  stdout: "",
  stderr: `Error: ${message}\n${usage}${message}\n`,
})
