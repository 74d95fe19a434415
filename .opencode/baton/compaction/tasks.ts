import type { PluginInput } from "@opencode-ai/plugin"
import type { Log } from "../host/log.ts"
import { createSessions } from "../host/sessions.ts"
import { createStateFolder } from "../host/state-folder.ts"
import { createTaskRegistry, type TaskRegistry } from "../task/registry.ts"
import { storedBindings } from "../task/stored-bindings.ts"
import { collectUserText } from "../task/user-text.ts"

export { collectUserText }

/** The part of the feature that a user's first message needs: which task each session works on. */
export const createTasks = (
  { client }: PluginInput,
  { log, projectRoot }: { log: Log; projectRoot: string },
): TaskRegistry =>
  createTaskRegistry({
    store: storedBindings({ state: createStateFolder(projectRoot), log }),
    sessions: createSessions(client),
    log,
    now: () => new Date(),
  })
