import { copiesCheck } from "./checks/copies.ts"
import { databaseCheck } from "./checks/database.ts"
import { dependenciesCheck } from "./checks/dependencies.ts"
import { filesCheck } from "./checks/files.ts"
import { handoffsCheck } from "./checks/handoffs.ts"
import { learningCheck } from "./checks/learning.ts"
import { ledgerCheck } from "./checks/ledger.ts"
import { liveStateCheck } from "./checks/live-state.ts"
import { openCodeCheck } from "./checks/opencode.ts"
import { outboxCheck } from "./checks/outbox.ts"
import { passesCheck } from "./checks/passes.ts"
import { pluginsCheck } from "./checks/plugins.ts"
import { promptsCheck } from "./checks/prompts.ts"
import { settingsCheck } from "./checks/settings.ts"
import { stateCheck } from "./checks/state.ts"
import { switchesCheck } from "./checks/switches.ts"
import type { Check } from "./finding.ts"

/** In the order a person reads them: the host, the bundle, what the model reads, the records. */
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
