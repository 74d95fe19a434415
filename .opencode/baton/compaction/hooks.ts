import { delimiter, join } from "node:path"
import type { Hooks, PluginInput } from "@opencode-ai/plugin"
import type { Event, Message, Part } from "@opencode-ai/sdk"
import { loadOnce } from "../host/async.ts"
import { bundleRoot, claimBundle } from "../host/bundle-claim.ts"
import { guardDispose, guardHook, guardObserver } from "../host/guard.ts"
import { createLog } from "../host/log.ts"
import { findProjectRoot } from "../host/project.ts"
import { hasWaitingRecords } from "../ledger/waiting-records.ts"
import type { CompactionFeature } from "./feature.ts"

/** In every task line and in much else: a cheap look that never misses one (docs/adr/0003). */
const TASK_MARK = "Task:"
/** A session that falls out is looked up like any other. */
const MAX_SESSIONS = 1_000

/** The ids of the user messages that passed by; "all" once the first request showed that there are no others. */
type Heard = ReadonlySet<string> | "all"

/**
 * The sessions that began in this process and work on no task, as most of a person's sessions and their children do:
 * nothing about them has to be loaded or looked up.
 */
export const createBornSessions = () => {
  const sessions = new Map<string, Heard>()
  const keep = (sessionID: string): void => {
    sessions.set(sessionID, new Set())
    const oldest = sessions.size > MAX_SESSIONS ? sessions.keys().next().value : undefined
    if (oldest !== undefined) sessions.delete(oldest)
  }
  return {
    born: (sessionID: string, parentID: string | undefined): void => {
      if (parentID === undefined || sessions.has(parentID)) keep(sessionID)
    },
    /** A user's message arrived. @returns whether the session is still taskless */
    noteMessage: (sessionID: string, { id }: Pick<Message, "id">, parts: readonly Part[]): boolean => {
      const heard = sessions.get(sessionID)
      if (heard === undefined) return false
      if (parts.some((part) => part.type === "text" && part.text.includes(TASK_MARK))) {
        sessions.delete(sessionID)
        return false
      }
      if (heard !== "all") sessions.set(sessionID, new Set([...heard, id]))
      return true
    },
    /** As far as is known: a fork counts until its first request. */
    isTaskless: (sessionID: string): boolean => sessions.has(sessionID),
    /** For certain, since its first request was seen. */
    isSurelyTaskless: (sessionID: string): boolean => sessions.get(sessionID) === "all",
    /** A fork begins with messages that did not pass by here. @returns whether the session is still taskless */
    checkFirstRequest: (sessionID: string, messages: readonly { readonly info: Message }[]): boolean => {
      const heard = sessions.get(sessionID)
      if (heard === undefined) return false
      if (heard !== "all" && messages.some(({ info }) => info.role === "user" && !heard.has(info.id))) {
        sessions.delete(sessionID)
        return false
      }
      sessions.set(sessionID, "all")
      return true
    },
    /** @returns whether it was taskless */
    forget: (sessionID: string): boolean => sessions.delete(sessionID),
  }
}

/** In all, for the hook that OpenCode waits on before it asks for a summary. */
const COMPACTING_DEADLINE_MS = 3_000
const MESSAGES_DEADLINE_MS = 3_000
const SHORT_DEADLINE_MS = 1_000

/** The events the feature wants; all others, a token delta above all, end at this set. */
const OBSERVED_EVENTS: ReadonlySet<string> = new Set([
  "message.part.updated",
  "session.created",
  "session.compacted",
  "session.idle",
  "session.deleted",
])

type ModelRequest = Parameters<NonNullable<Hooks["chat.params"]>>[0]

/** OpenCode's own helpers run on models of their own; their limits say nothing about the session's. */
const HELPER_AGENTS: ReadonlySet<string> = new Set(["title", "summary", "compaction"])

/** The context of the session's own model; undefined when it is unknown, or the request a helper's. */
const contextTokensOf = ({ agent, model }: ModelRequest): number | undefined => {
  const name: unknown = typeof agent === "string" ? agent : Reflect.get(Object(agent), "name")
  const contextTokens = model.limit.context
  return contextTokens > 0 && !HELPER_AGENTS.has(String(name)) ? contextTokens : undefined
}

/**
 * The compaction handoff's hooks for one directory of one OpenCode process.
 *
 * Only what the hooks themselves need is loaded here; the feature behind them is loaded at the first event or message
 * that wants it, so that OpenCode's start does not wait for it (docs/adr/0003).
 */
export const createCompactionHooks = (input: PluginInput): Hooks => {
  const { client, directory, worktree } = input
  const log = createLog(client, "compaction-handoff")
  const projectRoot = findProjectRoot(directory, worktree)
  const claim = claimBundle({ feature: "compaction-handoff", directory, projectRoot, bundleRoot })
  if (claim.other !== undefined) {
    const [serving, quiet] = claim.isHeld() ? [bundleRoot, claim.other] : [claim.other, bundleRoot]
    log.info("two copies of the bundle are loaded: one serves the project, the other stays quiet", { serving, quiet })
  }

  const born = createBornSessions()
  const loadFeature = loadOnce(async () => {
    const { createCompactionFeature } = await import("./feature.ts")
    return createCompactionFeature(input, { log, projectRoot, bundleRoot })
  })
  let loading: Promise<CompactionFeature> | undefined
  const load = (): Promise<CompactionFeature> => {
    loading = loadFeature()
    return loading
  }
  const ifHeld =
    <Input, Output>(hook: (input: Input, output: Output) => Promise<void>) =>
    async (input: Input, output: Output): Promise<void> => {
      if (claim.isHeld()) await hook(input, output)
    }
  const isForNothing = (event: Event): boolean => {
    switch (event.type) {
      case "session.created": {
        const { id, parentID } = event.properties.info
        if (!hasWaitingRecords(projectRoot)) born.born(id, parentID)
        return born.isTaskless(id)
      }
      case "session.deleted":
        return born.forget(event.properties.info.id)
      case "message.part.updated": {
        const { sessionID, type } = event.properties.part
        return (type !== "compaction" && type !== "patch") || born.isTaskless(sessionID)
      }
      case "session.compacted":
        return born.isSurelyTaskless(event.properties.sessionID)
      case "session.idle":
        return loading === undefined
      default:
        return false
    }
  }
  const about = <Input extends { sessionID: string }>({ sessionID }: Input) => ({ sessionID })
  return {
    "chat.message": ifHeld(
      guardHook(
        log,
        { name: "chat.message", deadlineMs: SHORT_DEADLINE_MS },
        async ({ sessionID }, { message, parts }) => {
          if (!born.noteMessage(sessionID, message, parts)) return (await load()).userMessage(message, parts)
          log.debug("session has no task: nothing to do", { sessionID })
          return undefined
        },
        about,
      ),
    ),
    "chat.params": ifHeld(
      guardHook(
        log,
        { name: "chat.params", deadlineMs: SHORT_DEADLINE_MS },
        async (request) => {
          const { sessionID } = request
          const contextTokens = contextTokensOf(request)
          if (contextTokens === undefined || born.isTaskless(sessionID)) return undefined
          ;(await load()).modelUsed(sessionID, contextTokens)
          return undefined
        },
        about,
      ),
    ),
    "tool.execute.after": ifHeld(
      guardHook(
        log,
        { name: "tool.execute.after", deadlineMs: SHORT_DEADLINE_MS },
        async ({ sessionID, tool, args }, { metadata }) =>
          born.isTaskless(sessionID) ? undefined : (await load()).toolUsed(sessionID, { tool, args, metadata }),
        about,
      ),
    ),
    "experimental.session.compacting": ifHeld(
      guardHook(
        log,
        { name: "experimental.session.compacting", deadlineMs: COMPACTING_DEADLINE_MS },
        // A fork may be compacted before its first request, and then nobody heard its messages yet.
        async ({ sessionID }, output) =>
          born.isSurelyTaskless(sessionID) ? undefined : (await load()).preparePrompt(sessionID, output),
        about,
      ),
    ),
    "experimental.chat.messages.transform": ifHeld(
      guardHook(
        log,
        { name: "experimental.chat.messages.transform", deadlineMs: MESSAGES_DEADLINE_MS },
        async (_input, { messages }) => {
          const isTaskless = born.checkFirstRequest(messages[0]?.info.sessionID ?? "", messages)
          return isTaskless ? undefined : (await load()).remind(messages)
        },
        (_input, { messages }) => ({ sessionID: messages[0]?.info.sessionID }),
      ),
    ),
    "shell.env": ifHeld(
      guardHook(log, { name: "shell.env", deadlineMs: SHORT_DEADLINE_MS }, async (_input, output) => () => {
        const path = output.env.PATH ?? process.env.PATH ?? ""
        output.env.PATH = `${join(bundleRoot, "bin")}${delimiter}${path}`
        // On Desktop execPath is not OpenCode's own binary and cannot act as Bun.
        if (process.versions.bun !== undefined) output.env.BATON_RUNTIME = process.execPath
      }),
    ),
    event: guardObserver(log, "event", ({ event }) => {
      if (!OBSERVED_EVENTS.has(event.type) || !claim.isHeld() || isForNothing(event)) return undefined
      return load().then((feature) => feature.observe(event))
    }),
    dispose: guardDispose(log, { instance: client, claim }, async () => {
      await (await loading)?.stop()
    }),
  }
}
