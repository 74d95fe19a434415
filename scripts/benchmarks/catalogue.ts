import type { RequirementId } from "../../test/requirements.ts"
import { measureAdditions } from "./additions.ts"
import { measureAudit } from "./audit.ts"
import type { Benchmark } from "./benchmark.ts"
import { measureEvent } from "./event.ts"
import { measureHook } from "./hook.ts"
import { measureLearning } from "./learning.ts"
import { measureLedger } from "./ledger.ts"
import { measureLiveState } from "./live-state.ts"
import { measureLoad } from "./load.ts"
import { measureObserve } from "./observe.ts"
import { measurePass } from "./pass.ts"
import { measurePeers } from "./peers.ts"
import { measureReferences } from "./references.ts"
import type { BenchmarkName } from "./results.ts"
import { measureRetentionTable } from "./retention.ts"
import { measureSoak } from "./soak/soak.ts"
import { measureStart } from "./start.ts"
import { measureTokens } from "./tokens.ts"
import { measureTranscript } from "./transcript.ts"
import { measureTuiDrafts } from "./tui-draft.ts"

export type Entry = { requirement: RequirementId; about: string; measure: Benchmark }

export const CATALOGUE: Record<BenchmarkName, Entry> = {
  load: { requirement: "speed.G1", about: "import and init of the bundle", measure: measureLoad },
  start: { requirement: "speed.G1", about: "`opencode run` with and without the bundle", measure: measureStart },
  hook: { requirement: "speed.G2", about: "the compacting hook at 10 to 10,000 messages", measure: measureHook },
  event: { requirement: "speed.G3", about: "an event the bundle does not need", measure: measureEvent },
  ledger: { requirement: "speed.G4", about: "the embedded prog log", measure: measureLedger },
  retention: { requirement: "speed.G5", about: "what 1 to 50 compactions leave", measure: measureRetentionTable },
  additions: { requirement: "speed.G5", about: "the most that a task adds", measure: measureAdditions },
  tokens: { requirement: "tokens.C2", about: "what each feature adds to a request", measure: measureTokens },
  peers: { requirement: "peers.C1", about: "Baton beside other plugins, on the same work", measure: measurePeers },
  references: { requirement: "handoff.C1", about: "parsing 1 MB of hostile text", measure: measureReferences },
  transcript: { requirement: "handoff.D4", about: "reading a session of 10,000 messages", measure: measureTranscript },
  "live-state": {
    requirement: "live-state.D3",
    about: "what the live state costs, and how old it is",
    measure: measureLiveState,
  },
  "tui-draft": { requirement: "handoff.B2", about: "50 handoffs in the real TUI", measure: measureTuiDrafts },
  observe: { requirement: "live-state.C3", about: "watching 50 agents on the page", measure: measureObserve },
  learning: { requirement: "learning.A3", about: "what is learned from labelled messages", measure: measureLearning },
  audit: { requirement: "pass-over.G3", about: "a query over 100,000 lines of the audit", measure: measureAudit },
  pass: { requirement: "pass-over.G3", about: "a pass over a plain child session", measure: measurePass },
  soak: { requirement: "soak.B3", about: "500 compactions, and 200 sessions in 20 directories", measure: measureSoak },
}
