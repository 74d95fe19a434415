// @ts-check
// Baton as a plugin from npm: `"plugin": ["baton-opencode@…"]` in opencode.json. An OpenCode that knows no `./server` calls each
// export; the others take server.mjs. See docs/adr/0017-a-package-that-installs-a-bundle.md.
import "../scripts/lib/read-typescript.mjs"

/** @typedef {import("@opencode-ai/plugin").Plugin} Plugin */

// Imported within, since what a file imports at its top is read before the line above has run.

/** @type {Plugin} */
export const CompactionHandoff = async (input) =>
  (await import("./plugins/compaction-handoff.ts")).CompactionHandoff(input)

/** @type {Plugin} */
export const HandoffPlugin = async (input) => (await import("./plugins/handoff.ts")).HandoffPlugin(input)

/** @type {Plugin} */
export const LiveState = async (input) => (await import("./plugins/live-state.ts")).LiveState(input)

/** @type {Plugin} */
export const PassOver = async (input) => (await import("./plugins/pass-over.ts")).PassOver(input)

/** @type {Plugin} */
export const SessionLearning = async (input) => (await import("./plugins/session-learning.ts")).SessionLearning(input)

/** @type {Plugin} */
export const WriteGuard = async (input) => (await import("./plugins/write-guard.ts")).WriteGuard(input)
