import type { Config, ToolDefinition } from "@opencode-ai/plugin"
import type { Log } from "../host/log.ts"
import { createPromptFiles } from "../task/prompts.ts"
import { registerCommand } from "./command.ts"
import { createToolOffers, type ToolOffers } from "./tool-offers.ts"
import { createHandoffTools, type HandoffToolDeps } from "./tools.ts"

export type HandoffSetup = {
  readonly offers: ToolOffers
  registerCommand(config: Config): void
  createTools(deps: HandoffToolDeps): Record<string, ToolDefinition>
}

/** What OpenCode needs to know of the feature at its start. */
export const createHandoffSetup = ({ projectRoot, log }: { projectRoot: string; log: Log }): HandoffSetup => ({
  offers: createToolOffers(),
  registerCommand: (config) => registerCommand(config, createPromptFiles({ root: projectRoot }), log),
  createTools: createHandoffTools,
})
