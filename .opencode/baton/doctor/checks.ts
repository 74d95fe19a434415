import { handoffsCheck, learningCheck, liveStateCheck, passesCheck } from "./checks/features.ts"
import { filesCheck, promptsCheck, settingsCheck } from "./checks/files.ts"
import { copiesCheck, dependenciesCheck, openCodeCheck, pluginsCheck, switchesCheck } from "./checks/opencode.ts"
import { databaseCheck, ledgerCheck, outboxCheck, stateCheck } from "./checks/records.ts"
import type { Check } from "./report.ts"

/** In the order of the report: the host, the bundle, what the model reads, the records. */
export const CHECKS: readonly Check[] = [
  openCodeCheck,
  switchesCheck,
  filesCheck,
  pluginsCheck,
  copiesCheck,
  dependenciesCheck,
  promptsCheck,
  settingsCheck,
  ledgerCheck,
  databaseCheck,
  outboxCheck,
  handoffsCheck,
  liveStateCheck,
  learningCheck,
  passesCheck,
  stateCheck,
]
