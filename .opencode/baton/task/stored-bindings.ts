import type { Log } from "../host/log.ts"
import { createSessionStore, type SessionStore } from "../host/session-store.ts"
import type { StateFolder } from "../host/state-folder.ts"
import { type TaskBinding, taskBindingSchema } from "./binding.ts"

/** The bindings of a project's sessions, under `.opencode/state/tasks`, where every feature finds them. */
export const storedBindings = (deps: { state: StateFolder; log: Log }): SessionStore<TaskBinding> =>
  createSessionStore({ ...deps, folder: "tasks", schema: taskBindingSchema })
