import { createHash } from "node:crypto"
import { isOpenCode2 } from "../host/opencode-2/context.ts"
import type { StartFeature } from "../host/port.ts"
import { bundleRoot } from "../host/project.ts"

/** OpenCode 2 refuses the second of two plugins with one id, and a project may have a copy of the bundle beside the user's. */
const COPY = createHash("sha256").update(bundleRoot).digest("hex").slice(0, 6)

/**
 * The default export of a plugin file, beside its named function: 1.2.15 calls the function, 1.18.33 `server`, and OpenCode 2
 * `setup` (docs/adr/0026).
 *
 * @param id of the plugin in OpenCode 2's list
 */
export const entryOf = (id: string, server: StartFeature) => ({
  id: `baton.${id}.${COPY}`,
  server,
  setup: async (context: unknown): Promise<(() => Promise<void>) | undefined> => {
    // 1.18.33 calls both, this one with a context that has no sessions.
    if (!isOpenCode2(context)) return undefined
    const { serve } = await import("../host/opencode-2/entry.ts")
    return serve(id, context, server)
  },
})
