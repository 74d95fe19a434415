import type { PluginInput } from "@opencode-ai/plugin"
import type { UserMessage } from "@opencode-ai/sdk"
import { createClientCall, isRecord, malformed } from "./client-call.ts"

export type ModelName = UserMessage["model"]

/** OpenCode itself waits for the same before it makes a request. */
const CONFIG_DEADLINE_MS = 2_500

const contextIn = (data: unknown, { providerID, modelID }: ModelName): number | undefined => {
  const providers = isRecord(data) && Array.isArray(data.providers) ? data.providers : []
  const provider: unknown = providers.find((each) => isRecord(each) && each.id === providerID)
  const models = isRecord(provider) && isRecord(provider.models) ? provider.models : {}
  const model = models[modelID]
  const context = isRecord(model) && isRecord(model.limit) ? model.limit.context : undefined
  return typeof context === "number" && context > 0 ? context : undefined
}

/**
 * The context of a model in tokens, for a request whose parameters are not known yet; undefined when OpenCode does not say.
 * OpenCode has the models ready when it makes a request, so that this adds little.
 */
export const createModelContext = (client: Pick<PluginInput["client"], "config">) => {
  const call = createClientCall(CONFIG_DEADLINE_MS)
  return async (model: ModelName): Promise<number | undefined> => {
    const answer = await call(
      "config.providers",
      () => client.config.providers(),
      (data) =>
        isRecord(data) ? { kind: "answer", value: contextIn(data, model) } : malformed("config.providers", data),
    )
    return answer.kind === "answer" ? answer.value : undefined
  }
}
