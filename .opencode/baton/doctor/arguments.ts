export type DoctorRequest = { readonly directory: string | undefined; readonly json: boolean }

/**
 * `[DIR] [--json]`; what follows `--` is a folder even when it starts with a dash. The launcher answers `--help`.
 *
 * @throws an Error that says what was expected and what was received
 */
export const parseArguments = (args: readonly string[]): DoctorRequest => {
  const end = args.indexOf("--")
  const flags = end < 0 ? args : args.slice(0, end)
  const unknown = flags.find((argument) => argument.startsWith("-") && argument !== "--json")
  if (unknown !== undefined) throw new Error(`unknown option: ${unknown}`)
  const folders = [...flags.filter((argument) => !argument.startsWith("-")), ...(end < 0 ? [] : args.slice(end + 1))]
  if (folders.length > 1) {
    const received = folders.map((folder) => `'${folder}'`).join(" and ")
    throw new Error(`expected one project folder, received ${folders.length}: ${received}`)
  }
  if (folders[0] === "") throw new Error("expected a project folder, received an empty name")
  return { directory: folders[0], json: flags.includes("--json") }
}
