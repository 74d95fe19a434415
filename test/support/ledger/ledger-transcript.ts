import type { RunLedger } from "./ledger-process.ts"
import type { LedgerTables, SqlRow } from "./ledger-rows.ts"

const ID = /\b(?:ts|ep|lrn|con|lbl)-[0-9a-f]{6}\b/g
const TIME = /\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z| [+-]\d{4} [^\s"]+|[+-]\d\d:\d\d)?(?: m=[^\s"]+)?/g

/** Names ids by order of appearance and hides times, so that two runs of the same commands can be compared. */
export const createNormalizer = () => {
  const names = new Map<string, string>()
  const nameOf = (id: string): string => {
    const name = names.get(id) ?? `${id.slice(0, id.indexOf("-"))}#${names.size + 1}`
    names.set(id, name)
    return name
  }
  return (text: string): string => text.replace(ID, nameOf).replace(TIME, "TIME")
}

export type Step = { readonly line: string; readonly exitCode: number; readonly stdout: string; readonly error: string }

/** Runs command lines and keeps their output with normalised ids and times; usage texts differ between the ledgers. */
export const createTranscript = (run: RunLedger, normalize: (text: string) => string) => {
  const steps: Step[] = []
  return {
    steps,
    say: async (...args: readonly string[]): Promise<string> => {
      const { exitCode, stdout, stderr } = await run(args)
      const line = normalize(args.join(" "))
      steps.push({ line, exitCode, stdout: normalize(stdout), error: normalize(stderr.split("\n")[0] ?? "") })
      return stdout.trim()
    },
  }
}

const byText = (left: string, right: string): number => (left < right ? -1 : 1)

/** Rows as texts, normalised and sorted. The ids of concepts and labels are hidden, since no output shows them. */
export const normalizeTables = (
  tables: LedgerTables,
  normalize: (text: string) => string,
): Record<string, string[]> => {
  const hidden = (text: string): string => text.replace(/"(con|lbl)-[0-9a-f]{6}"/g, '"$1"')
  const rowText = (row: SqlRow): string => normalize(hidden(JSON.stringify(row)))
  return Object.fromEntries(Object.entries(tables).map(([name, rows]) => [name, rows.map(rowText).toSorted(byText)]))
}
