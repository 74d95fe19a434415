import { existsSync } from "node:fs"
import type { LedgerStatus } from "../../ledger/ledger.ts"
import { broken, type Check, type Observation, ok, warning } from "../finding.ts"
import { locateLedger } from "../locate-ledger.ts"

const judgeProgram = ({ program }: LedgerStatus): Observation => {
  switch (program.kind) {
    case "real":
      return ok(`real prog (${program.path})`)
    case "embedded":
      return existsSync(program.path)
        ? ok("embedded ledger, since no real prog is on PATH; both keep the same database")
        : broken(
            `no real prog on PATH, and the embedded ledger is missing: ${program.path}`,
            "Run scripts/install again.",
          )
    case "unavailable":
      return broken(
        `no ledger: ${program.reason}; records wait in the outbox`,
        "Mend or remove that program, or set BATON_LEDGER=embedded to leave it alone.",
      )
  }
}

export const ledgerCheck: Check = {
  id: "ledger",
  needsBundle: true,
  examine: async (subject) => {
    const status = await locateLedger(subject)
    const foreign = status.foreign.map(({ path, reason }) =>
      warning(
        `${path} is called prog and is not the ledger: ${reason}`,
        "Baton does not use it. In your own shell, write .opencode/baton/bin/prog, or put the real prog first on PATH.",
      ),
    )
    return [judgeProgram(status), ...foreign]
  },
}
