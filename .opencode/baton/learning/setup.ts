import type { ToolDefinition } from "@opencode-ai/plugin"
import { createArgumentTypes } from "../host/argument-types.ts"
import { hideTools } from "../host/hidden-tools.ts"
import { requireZodCore } from "../host/schema.ts"
import type { StoredMessage } from "../host/sessions.ts"
import type { LearningFeature } from "./feature.ts"
import { LEARNING_TOOLS } from "./tool-names.ts"
import { createLearningTools } from "./tools.ts"

/** @throws when zod cannot be loaded */
export const createTools = (load: () => Promise<LearningFeature | undefined>): Record<string, ToolDefinition> =>
  createLearningTools(createArgumentTypes(requireZodCore()), load)

/** Takes the feature's tools out of a request. */
export const hideAll = (messages: readonly StoredMessage[]): void => hideTools(messages, LEARNING_TOOLS)
