import type { Part, UserMessage } from "@opencode-ai/sdk"
import type { Instance } from "../core/core.ts"
import type { Services } from "../core/services.ts"
import { createKeyedQueue } from "../host/async.ts"
import type { Log } from "../host/log.ts"
import { createModelContext } from "../host/sessions.ts"
import { createJsonStore } from "../host/state.ts"
import { collectUserText } from "../task/parse.ts"
import { createOpenings } from "./openings.ts"
import { createProgress } from "./progress.ts"
import { createSessionStates, sessionStateSchema } from "./session-state.ts"
import { createTurns } from "./turns.ts"

/** Puts the feature together for one directory. */
export const createCompactionFeature = (
  { input: { client }, root, projectRoot }: Instance,
  services: Services,
  log: Log,
) => {
  const { state, tasks } = services
  const claimsMode = async () => {
    const { settingsOrDefaults } = await import("../host/settings.ts")
    return (await settingsOrDefaults(projectRoot, log)).claims
  }
  const shared = {
    ...services,
    sessionStates: createSessionStates(
      createJsonStore({ state, folder: "compactions", schema: sessionStateSchema, log }),
    ),
    claimsMode,
    root,
    log,
    now: () => new Date(),
  }
  const queue = createKeyedQueue()
  const progress = createProgress({ ...shared, queue })
  const openings = createOpenings({
    ...shared,
    modelContext: createModelContext(client),
    recover: progress.recover,
  })
  const { userArrived, ...turns } = createTurns({
    ...shared,
    openings,
    progress,
    queue,
    loadCompaction: async (seen) => {
      const { createCompaction } = await import("./compaction.ts")
      return createCompaction({ ...shared, seen })
    },
    loadClaims: async () => {
      const { createTaskClaims } = await import("./claims.ts")
      return createTaskClaims({ ...shared, mode: claimsMode, tell: openings.claimed })
    },
  })
  return {
    ...turns,
    userMessage: async ({ sessionID, model }: UserMessage, parts: readonly Part[]): Promise<undefined> => {
      // Bound before the request is sent, and on disk.
      await tasks.userMessage(sessionID, collectUserText(parts))
      userArrived(sessionID, model)
    },
    /** Saves what is unsaved. */
    stop: async (): Promise<void> => {
      await turns.stop()
      await shared.sessionStates.saveAll()
    },
  }
}
