import type { Log } from "../../host/log.ts"
import { readSettings } from "../../host/settings.ts"
import { createStateFolder } from "../../host/state.ts"
import { createSessionRecords } from "../../learning/session-records.ts"
import { type Check, type Observation, ok, warning } from "../finding.ts"

const WAITING_FIX = "OpenCode stores it at its next start here; .opencode/baton/bin/baton learned lists what is stored."
const UNUSABLE_FIX = "Delete the file; what its session taught is in the ledger, unless it was waiting."

export const learningCheck: Check = {
  id: "learning",
  needsBundle: true,
  examine: async ({ root }) => {
    const read = await readSettings(root)
    if (read.kind === "settings" && !read.settings.learning.enabled) return [ok("session learning is switched off")]
    const unusable: string[] = []
    const warn: Log["warn"] = (_message, { path, folder, error } = {}) => {
      unusable.push([path ?? folder, error].filter(Boolean).join(": "))
    }
    const log: Log = { debug: () => {}, info: () => {}, warn, error: warn }
    const records = createSessionRecords({ state: createStateFolder(root), log, pid: process.pid })
    const all = await records.all()
    const taught = all.reduce((sum, { sayings }) => sum + sayings.length, 0)
    const given = all.filter((record) => record.given.length > 0).length
    const waiting = all.reduce((sum, { sayings }) => sum + sayings.filter(({ state }) => state === "waiting").length, 0)
    const nothing = all.length === 0 && unusable.length === 0
    const summary = nothing
      ? "nothing was learned yet"
      : `${taught} ${taught === 1 ? "sentence" : "sentences"} learned from, learnings given to ${given} ${given === 1 ? "session" : "sessions"}`
    return [
      ok(summary),
      ...(waiting > 0 ? [warning(`${waiting} of them wait to reach the outbox`, WAITING_FIX)] : []),
      ...unusable.map((what): Observation => warning(`a session's record cannot be read: ${what}`, UNUSABLE_FIX)),
    ]
  },
}
