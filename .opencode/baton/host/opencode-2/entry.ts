import type { Config, Hooks } from "@opencode-ai/plugin"
import type { Model, UserMessage } from "@opencode-ai/sdk"
import { withDeadline } from "../async.ts"
import { describeError } from "../log.ts"
import type { FeatureHooks, StartFeature } from "../port.ts"
import { addCommands, readCommands } from "./commands.ts"
import { hookCompaction } from "./compaction.ts"
import type { Context, PromptEvent, RequestEvent } from "./context.ts"
import { inTime, safely } from "./guard.ts"
import { type OpenLocation, openLocation } from "./location.ts"
import { sentMessage } from "./messages.ts"
import { hookPermissions } from "./permissions.ts"
import { hookShell } from "./shell.ts"
import { addTools, hookTools } from "./tools.ts"

/** OpenCode 2 waits for `setup` before a session's first request, without a limit of its own. */
const SETUP_DEADLINE_MS = 2_000

/** A user's message, before it is stored. */
const onPrompt = async (
  location: OpenLocation,
  hooks: Hooks,
  { sessionID, messageID, prompt }: PromptEvent,
): Promise<void> => {
  await location.know(sessionID)
  location.sent(sessionID, messageID)
  if (!hooks["chat.message"]) return
  const { agent = "build", model = { id: "", providerID: "" } } = (await location.session(sessionID)) ?? {}
  const { info, parts } = sentMessage({ sessionID, messageID }, prompt.text, { agent, model }, Date.now())
  await hooks["chat.message"]({ sessionID, messageID }, { message: info as UserMessage, parts })
  prompt.text = parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")
}

/** A request to the model. */
const onRequest = async (location: OpenLocation, hooks: Hooks, event: RequestEvent): Promise<void> => {
  const { sessionID, agent, model } = event
  await location.know(sessionID)
  const { "chat.params": params, "experimental.chat.messages.transform": transform } = hooks
  if (params) {
    const limit = { context: (await location.contextOf(model)) ?? 0, output: 0 }
    const named = { id: model.id, providerID: model.providerID, limit } as Model
    const output = { temperature: 0, topP: 0, topK: 0, maxOutputTokens: undefined, options: {} }
    await params({ sessionID, agent, model: named } as Parameters<typeof params>[0], output)
  }
  if (!transform) return
  const { messages, apply } = await location.request(event)
  if (messages.length === 0) return
  await transform({}, { messages })
  apply()
}

const hookSession = async (context: Context, location: OpenLocation, hooks: FeatureHooks): Promise<void> => {
  const { log } = location
  await context.session.hook("prompt", (event) =>
    safely(log, "prompt", event.sessionID, () => onPrompt(location, hooks, event)),
  )
  await context.session.hook("context", (event) =>
    safely(log, "context", event.sessionID, () => onRequest(location, hooks, event)),
  )
  const { title } = hooks
  if (title)
    await context.session.hook("title", (event) =>
      safely(log, "title", event.sessionID, async () => {
        const result = await inTime(title(event.sessionID))
        if (result !== undefined) event.result = result
      }),
    )
  await hookCompaction(context, hooks["experimental.session.compacting"], log)
}

/**
 * Lets the feature set up its commands, tools and rules as in OpenCode 1, and gives them to OpenCode 2.
 *
 * @returns to be called at the feature's end
 */
const configure = async (context: Context, location: OpenLocation, hooks: Hooks): Promise<() => void> => {
  const command = hooks.config ? await readCommands(context) : {}
  const config: Config = { command, agent: {} }
  const taken = new Set(Object.keys(command))
  await hooks.config?.(config)
  const names = Object.keys(command).filter((name) => !taken.has(name))
  const forget = await addCommands(context, command, names, async (input, output) => {
    for (const each of location.features) await each["command.execute.before"]?.(input, output)
  })
  await addTools(context, hooks.tool ?? {})
  await hookPermissions(context, config)
  return forget
}

/**
 * Serves a feature in OpenCode 2.
 *
 * @param id of the plugin, for the log
 * @returns the clean-up. When a plugin's files change, OpenCode ends it and those after it in its list, and sets them up again
 */
export const serve = async (id: string, context: Context, start: StartFeature): Promise<() => Promise<void>> => {
  const location = openLocation(context)
  const { log } = location
  let isOver = false
  let end = async (): Promise<void> => {
    isOver = true
  }
  let forget = (): void => {}
  const register = async (): Promise<void> => {
    const hooks = await start(location.host)
    const leave = location.add(hooks)
    end = () => {
      forget()
      return leave()
    }
    if (isOver) return end()
    const [configured] = await Promise.all([
      configure(context, location, hooks),
      hookSession(context, location, hooks),
      hookTools(context, hooks),
      hookShell(context, hooks["shell.env"]),
    ])
    forget = configured
  }
  const outcome = await withDeadline(register(), SETUP_DEADLINE_MS)
  if (outcome.kind === "failed")
    log.error("a plugin is not set up", { plugin: id, error: describeError(outcome.error) })
  if (outcome.kind === "late") log.warn("a plugin is set up late", { plugin: id, deadlineMs: SETUP_DEADLINE_MS })
  if (outcome.kind === "done") log.debug("a plugin is set up", { plugin: id })
  return () => end()
}
