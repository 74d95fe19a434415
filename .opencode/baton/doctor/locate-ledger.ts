import { join } from "node:path"
import { SILENT } from "../host/log.ts"
import { createStateFolder } from "../host/state.ts"
import { createLedger } from "../ledger/client.ts"
import type { LedgerStatus } from "../ledger/ledger.ts"
import type { Subject } from "./finding.ts"

/** The program that keeps the project's ledger, found as the plugins find it. */
export const locateLedger = ({ root, run, scratch, environment }: Subject): Promise<LedgerStatus> =>
  createLedger({
    run,
    directory: scratch,
    // Doctor's findings are its log.
    log: SILENT,
    state: createStateFolder(root),
    bundleRoot: join(root, ".opencode", "baton"),
    env: environment,
  }).status()
