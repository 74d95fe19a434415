// @ts-check
// Baton as a plugin from npm for OpenCode 2, and for newer 1.x, which look for the package's `./server` first; older ones call
// each export of index.mjs. One entry for all features: a package is one plugin there.
import "../scripts/lib/read-typescript.mjs"

/** @typedef {import("@opencode-ai/plugin").PluginInput} PluginInput */
/** @typedef {import("@opencode-ai/plugin").Hooks} Hooks */
/** @typedef {(...args: unknown[]) => unknown} Hook */

// Imported within, since what a file imports at its top is read before the line above has run.
const features = async () => {
  const modules = await Promise.all([
    import("./plugins/compaction-handoff.ts"),
    import("./plugins/handoff.ts"),
    import("./plugins/live-state.ts"),
    import("./plugins/pass-over.ts"),
    import("./plugins/session-learning.ts"),
    import("./plugins/write-guard.ts"),
  ])
  return modules.map((module) => module.default)
}

/** One after the other, as OpenCode calls those of several plugins. @param {readonly Hook[]} hooks @returns {Hook} */
const inTurn =
  (hooks) =>
  async (...args) => {
    for (const hook of hooks) await hook(...args)
  }

/** OpenCode waits for none. @param {readonly Hook[]} hooks @returns {Hook} */
const atOnce =
  (hooks) =>
  (...args) =>
    Promise.all(hooks.map((hook) => hook(...args)))

/** @param {readonly Hooks[]} all of one plugin each @returns {Hooks} the same as one plugin's */
const joinHooks = (all) => {
  const names = new Set(all.flatMap((hooks) => Object.keys(hooks)).filter((name) => name !== "tool"))
  const joined = [...names].map((name) => {
    const found = /** @type {Hook[]} */ (
      all.flatMap((hooks) => /** @type {Record<string, unknown>} */ (hooks)[name] ?? [])
    )
    return [name, (name === "event" ? atOnce : inTurn)(found)]
  })
  return {
    ...Object.fromEntries(joined),
    // Made when OpenCode asks for them.
    get tool() {
      return Object.assign({}, ...all.map(({ tool }) => tool))
    },
  }
}

export default {
  id: "baton-opencode",
  /** @param {PluginInput} input */
  server: async (input) => joinHooks(await Promise.all((await features()).map(({ server }) => server(input)))),
  /** @param {unknown} context @returns {Promise<() => Promise<void>>} the clean-up */
  setup: async (context) => {
    const ends = await Promise.all((await features()).map(({ setup }) => setup(context)))
    return async () => {
      for (const end of ends.reverse()) await end?.()
    }
  },
}
