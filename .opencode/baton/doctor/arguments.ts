export type DoctorRequest = { readonly directory: string | undefined; readonly json: boolean }

export type ParsedArguments =
  | { readonly kind: "request"; readonly request: DoctorRequest }
  | { readonly kind: "misuse"; readonly message: string }

/** `[DIR] [--json]`; what follows `--` is a folder even when it starts with a dash. The launcher answers `--help`. */
export const parseArguments = (args: readonly string[]): ParsedArguments => {
  const end = args.indexOf("--")
  const flags = end < 0 ? args : args.slice(0, end)
  const unknown = flags.find((argument) => argument.startsWith("-") && argument !== "--json")
  if (unknown !== undefined) return { kind: "misuse", message: `unknown option: ${unknown}` }
  const folders = [...flags.filter((argument) => !argument.startsWith("-")), ...(end < 0 ? [] : args.slice(end + 1))]
  if (folders.length > 1) {
    const received = folders.map((folder) => `'${folder}'`).join(" and ")
    return { kind: "misuse", message: `expected one project folder, received ${folders.length}: ${received}` }
  }
  if (folders[0] === "") return { kind: "misuse", message: "expected a project folder, received an empty name" }
  return { kind: "request", request: { directory: folders[0], json: flags.includes("--json") } }
}
