import { type Check, type Observation, ok, warning } from "../finding.ts"

/** Variables that switch off what Baton lives on; measured on the real binary (docs/opencode-notes.md). */
const SWITCHES = {
  OPENCODE_PURE: "OpenCode then loads no plugins",
  OPENCODE_DISABLE_PROJECT_CONFIG: "OpenCode then does not look into the project's .opencode",
  OPENCODE_DISABLE_AUTOCOMPACT: "sessions are then never compacted by themselves",
} as const

export const switchesCheck: Check = {
  id: "environment",
  examine: async ({ environment }) => {
    const set: Observation[] = Object.entries(SWITCHES)
      .filter(([name]) => environment[name])
      .map(([name, effect]) => warning(`${name} is set: ${effect}`, `Unset it before starting OpenCode: unset ${name}`))
    return set.length > 0 ? set : [ok("no variable switches plugins or compaction off")]
  },
}
