import type { PluginInput } from "@opencode-ai/plugin"
import { describeError, type LogExtra } from "../log.ts"
import { field } from "../schema.ts"
import type { Agent, Context, Model, Session } from "./context.ts"
import { lastSpeaking, sentMessage, standing, toStoredMessages } from "./messages.ts"
import { toolName } from "./names.ts"
import type { Presence } from "./presence.ts"

type Answer = { readonly data?: unknown; readonly error?: unknown; readonly response?: Response }

class GoneMessage extends Error {}

const isMissing = (error: unknown): boolean =>
  error instanceof GoneMessage || field(error, "_tag") === "Session.NotFoundError"

/** Answers as the client of OpenCode 1 does, which throws nothing. */
const answer = async (work: () => Promise<unknown>): Promise<Answer> => {
  try {
    return { data: await work() }
  } catch (error) {
    const response = new Response(null, { status: isMissing(error) ? 404 : 500 })
    return { error: isMissing(error) ? "it is not there" : describeError(error), response }
  }
}

const failure = (error: string): Promise<Answer> => Promise.resolve({ error })

export const toSessionInfo = ({ id, projectID, parentID, title, time, location, revert }: Session) => ({
  id,
  title: title ?? "",
  projectID,
  directory: location.directory,
  ...(parentID === undefined ? {} : { parentID }),
  ...(revert ? { revert: { messageID: revert.messageID } } : {}),
  time: { created: time.created, updated: time.updated },
  version: "2",
})

const toAgent = ({ id, mode, permissions = [] }: Agent) => ({
  name: id,
  mode,
  permission: permissions.map(({ action, resource, effect }) => ({
    permission: toolName(action),
    pattern: resource,
    action: effect,
  })),
})

/** The answer of OpenCode 1 about its models: by provider, and by id. */
const toProviders = (models: readonly Model[]) => {
  const names = [...new Set(models.map(({ providerID }) => providerID))]
  const providers = names.map((name) => {
    const own = models.filter(({ providerID }) => providerID === name)
    return { id: name, models: Object.fromEntries(own.map(({ id, limit }) => [id, { id, limit }])) }
  })
  return { providers, default: {} }
}

const UNKNOWN = { agent: "build", model: { id: "", providerID: "" } }

type ByID = { readonly path: { readonly id: string; readonly messageID?: string } }
type LogBody = { readonly body: { readonly level: string; readonly message: string; readonly extra?: LogExtra } }

/**
 * The calls of OpenCode 1's client that features use, over OpenCode 2's context. A call that OpenCode 2 has no counterpart for
 * answers with an error.
 */
export const createClient = (
  context: Context,
  writeLog: (entry: { level: string; message: string; extra: LogExtra }) => void,
  presence: Presence,
): PluginInput["client"] => {
  const toStored = (sessionID: string, entries: readonly unknown[]) =>
    toStoredMessages(sessionID, entries, lastSpeaking(entries) ?? UNKNOWN)
  const client = {
    app: {
      log: async ({ body: { level, message, extra = {} } }: LogBody) => writeLog({ level, message, extra }),
      agents: () => answer(async () => (await context.agent.list({})).data.map(toAgent)),
    },
    config: { providers: () => answer(async () => toProviders((await context.model.list({})).data)) },
    session: {
      get: ({ path: { id } }: ByID) => answer(async () => toSessionInfo(await context.session.get({ sessionID: id }))),
      messages: ({ path: { id } }: ByID) =>
        answer(async () => {
          const { session } = context
          const [all, { revert }] = await Promise.all([
            session.context({ sessionID: id }),
            session.get({ sessionID: id }),
          ])
          return toStored(id, standing(all, revert))
        }),
      /** A message from before the newest compaction has no text: OpenCode does not show it to plugins. */
      message: ({ path: { id, messageID = "" } }: ByID) =>
        answer(async () => {
          const entries = await context.session.context({ sessionID: id })
          // A summary has no entry of its own.
          const found = toStored(id, entries).find(({ info }) => info.id === messageID)
          if (!found && presence.isGone(id, messageID, entries)) throw new GoneMessage()
          return found ?? sentMessage({ sessionID: id, messageID }, "", UNKNOWN, 0)
        }),
      /** OpenCode 2 has no such tool. */
      todo: () => answer(async () => []),
    },
    tui: { showToast: () => failure("OpenCode 2 shows no notices of plugins") },
  }
  return client as unknown as PluginInput["client"]
}
