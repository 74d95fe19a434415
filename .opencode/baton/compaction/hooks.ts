import { readdirSync } from "node:fs"
import { delimiter, join } from "node:path"
import type { Hooks } from "@opencode-ai/plugin"
import type { Event, Part } from "@opencode-ai/sdk"
import type { Core } from "../core/core.ts"
import { createLruMap, lazy } from "../host/async.ts"
import { agentName } from "../host/guard.ts"
import { describeError } from "../host/log.ts"
import { sharesText } from "../host/messages.ts"
import type { CommandOutput, CompactingOutput, FeatureHooks } from "../host/port.ts"
import { bundleRoot } from "../host/project.ts"

/** A cheap test that misses no message which names a task, in the exact form or a natural one (docs/adr/0003). */
export const mayNameTask = (text: string): boolean => text.includes("Task:") || /\b(?:ts|ep)-[0-9a-f]{4}/i.test(text)

const MAX_NEW_SESSIONS = 1_000

/** For a hook that may wait for the ledger. */
const DEADLINE_MS = 3_000
const SHORT_DEADLINE_MS = 1_000

/** As the user typed it, and the parts that it expands to. */
type Command = { readonly name: string; readonly arguments: string; readonly parts: readonly Part[] }

type ModelRequest = Parameters<NonNullable<Hooks["chat.params"]>>[0]

/** OpenCode's helper agents run on models of their own, whose limits say nothing about the session's model. */
const HELPER_AGENTS: ReadonlySet<string> = new Set(["title", "summary", "compaction"])

/** Context size of the session's model in tokens; undefined when unknown or for a helper's request. */
const contextTokensOf = ({ agent, model }: ModelRequest): number | undefined => {
  const contextTokens = model.limit.context
  return contextTokens > 0 && !HELPER_AGENTS.has(agentName(agent)) ? contextTokens : undefined
}

/** The compaction handoff's hooks. The feature is loaded at the first event or message that needs it (docs/adr/0003). */
export const createCompactionHooks = (core: Core): FeatureHooks => {
  const feature = core.feature("compaction-handoff")
  const { log, hook } = feature
  /**
   * Creation times of the sessions that began in this process without a task: nothing has to be loaded or looked up for
   * them. An evicted one is looked up like any other.
   */
  const taskless = createLruMap<number>({ limit: MAX_NEW_SESSIONS })
  /** True where nothing has to be loaded for the session. A child's task is its parent's, which may get one. */
  const hasNoTask = (sessionID: string): boolean => {
    const parentID = core.parents.get(sessionID)
    return taskless.has(sessionID) && (typeof parentID !== "string" || hasNoTask(parentID))
  }
  /** Root sessions that began in this process and have no message yet, where `autoTask` is on. */
  const unopened = createLruMap<true>({ limit: MAX_NEW_SESSIONS })
  /** The message from which on each session's user has undone all, as OpenCode last said; "" for none. */
  const reverts = createLruMap<string>({ limit: MAX_NEW_SESSIONS })
  /** The newest command of a session, whose message may come next. */
  const commands = createLruMap<Command>({ limit: MAX_NEW_SESSIONS })
  let isAuto = false
  let setup: typeof import("./task-tools.ts") | undefined
  let command: string | undefined
  const load = lazy(async () => {
    const [{ createCompactionFeature }, services] = await Promise.all([import("./feature.ts"), core.services()])
    return createCompactionFeature(core, services, log)
  })
  let hasLookedForReport = false
  /** Says once that workers have come to their end, and that there is a report. */
  const tellOfReport = async (): Promise<void> => {
    if (hasLookedForReport) return
    hasLookedForReport = true
    const note = (await import("../host/work-note.ts")).readWorkNote(core.projectRoot)
    if (!note) return
    const message = "`baton report` says what became of the tasks; /task shows what waits for you"
    ;(await core.services()).notices({ title: "the workers have come to an end", message })
  }
  /** Keeps track of new sessions. @returns whether the feature needs the event: never for token deltas */
  const needs = (event: Event): boolean => {
    switch (event.type) {
      case "session.created": {
        const { id, parentID, time } = event.properties.info
        if (parentID === undefined || taskless.has(parentID)) taskless.set(id, time.created)
        if (isAuto && parentID === undefined) unopened.set(id, true)
        if (parentID === undefined)
          tellOfReport().catch((error: unknown) => log.warn("the report is not told", { error: describeError(error) }))
        return false
      }
      case "session.updated": {
        const { id, revert } = event.properties.info
        const now = revert?.messageID ?? ""
        const before = reverts.get(id) ?? ""
        if (now === before || hasNoTask(id)) return false
        reverts.set(id, now)
        return true
      }
      case "session.deleted": {
        const { id, parentID } = event.properties.info
        reverts.delete(id)
        commands.delete(id)
        return !(taskless.delete(id) && (parentID === undefined || hasNoTask(parentID)))
      }
      case "message.part.updated": {
        const { sessionID, type } = event.properties.part
        const isAnswer = type === "text" && event.properties.delta === undefined && load.current !== undefined
        return (type === "compaction" || type === "patch" || isAnswer) && !hasNoTask(sessionID)
      }
      case "session.compacted":
        return !hasNoTask(event.properties.sessionID)
      case "session.idle":
      case "session.error":
      case "message.updated":
        return load.current !== undefined
      default:
        return load.current !== undefined && /^(?:permission|question)\./.test(event.type)
    }
  }
  const planWithoutTask = (output: CompactingOutput): void => {
    output.planWithoutTask = async (conversation) =>
      (await import("./rescue.ts")).planWithoutTask(core.root, conversation)
  }
  const tools = feature.tools("task_show and task_log", () => setup?.createTools(load))
  return {
    config: feature.config("/task and its tools", async (config) => {
      isAuto = (await import("../host/settings.ts")).mayHaveSetting(core.projectRoot, "autoTask")
      setup = await import("./task-tools.ts")
      command = setup.registerCommand(config, log)
    }),
    get tool() {
      return tools()
    },
    "command.execute.before": hook("command.execute.before", DEADLINE_MS, async (input, output: CommandOutput) => {
      const { parts } = output
      unopened.delete(input.sessionID)
      const part = parts.find(({ type }) => type === "text")
      commands.set(input.sessionID, { name: input.command, arguments: input.arguments, parts })
      if (input.command !== command || part?.type !== "text") return undefined
      const { text, answer } = await (await load()).runTaskCommand(input.sessionID, input.arguments)
      return () => {
        part.text = text
        if (answer !== undefined) output.answer = answer
      }
    }),
    "chat.message": hook("chat.message", DEADLINE_MS, async ({ sessionID }, { message, parts }) => {
      const given = commands.get(sessionID)
      commands.delete(sessionID)
      const typed = given && sharesText(given.parts, parts) ? given : undefined
      const mayName = parts.some((part) => part.type === "text" && mayNameTask(part.text))
      const isFirst = unopened.delete(sessionID)
      if (mayName || (isFirst && (await (await load()).beginTask(message, parts)))) taskless.delete(sessionID)
      if (hasNoTask(sessionID)) return undefined
      return (await load()).userMessage(message, parts, { command: typed, mayBegin: isFirst && mayName })
    }),
    "chat.params": hook("chat.params", SHORT_DEADLINE_MS, async (request: ModelRequest) => {
      const { sessionID } = request
      const contextTokens = contextTokensOf(request)
      if (contextTokens === undefined || hasNoTask(sessionID)) return undefined
      ;(await load()).modelUsed(sessionID, contextTokens)
      return undefined
    }),
    title: async (sessionID) =>
      feature.isActive() && !hasNoTask(sessionID) ? (await load()).sessionTitle(sessionID) : undefined,
    "tool.execute.before": feature.gate("tool.execute.before", DEADLINE_MS, async ({ sessionID, tool }) =>
      hasNoTask(sessionID) ? undefined : (await load()).toolStarting(sessionID, tool),
    ),
    "tool.execute.after": hook(
      "tool.execute.after",
      SHORT_DEADLINE_MS,
      async ({ sessionID, tool, args }, { metadata }) =>
        hasNoTask(sessionID) ? undefined : (await load()).toolUsed(sessionID, { tool, args, metadata }),
    ),
    "experimental.session.compacting": hook(
      "experimental.session.compacting",
      DEADLINE_MS,
      async ({ sessionID }, output) => {
        // A fork may be compacted before its first request. Compactions are rare: their sessions are always looked up.
        taskless.delete(sessionID)
        return (await (await load()).preparePrompt(sessionID, output)) ?? (() => planWithoutTask(output))
      },
      (_input, output) => planWithoutTask(output),
    ),
    "experimental.chat.messages.transform": hook(
      "experimental.chat.messages.transform",
      DEADLINE_MS,
      async (_input, { messages }) => {
        const sessionID = messages[0]?.info.sessionID ?? ""
        const createdAt = hasNoTask(sessionID) ? taskless.get(sessionID) : undefined
        if (createdAt !== undefined && messages.every(({ info }) => info.time.created >= createdAt))
          return () => setup?.hideTools(messages)
        // A fork starts with copies of messages older than itself.
        taskless.delete(sessionID)
        const loaded = await load()
        const note = await loaded.prepareNote(messages)
        const needsTools = await loaded.needsTaskTools(messages)
        return () => {
          note?.()
          if (!needsTools) setup?.hideTools(messages)
        }
      },
      (_input, { messages }) => setup?.hideTools(messages),
    ),
    "shell.env": hook("shell.env", SHORT_DEADLINE_MS, async (_input, output) => () => {
      const path = output.env.PATH ?? process.env.PATH ?? ""
      const folder = join(bundleRoot, "path")
      // Anything else in that folder would run in place of the user's own programs.
      if (readdirSync(folder).join() === "prog") output.env.PATH = `${folder}${delimiter}${path}`
      else log.warn("the folder for the agent's PATH holds more than prog: it is left out", { folder })
      // On Desktop execPath is not OpenCode's own binary and cannot act as Bun.
      if (process.versions.bun !== undefined) output.env.BATON_RUNTIME = process.execPath
    }),
    event: feature.observer((event) => {
      if (!needs(event)) return undefined
      const { type, properties } = event
      return load().then((loaded) =>
        type === "session.updated" ? loaded.undoChanged(properties.info.id) : loaded.observe(event),
      )
    }),
    dispose: feature.dispose(async () => (await load.current)?.stop()),
  }
}
