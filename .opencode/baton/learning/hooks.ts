import { existsSync, statSync } from "node:fs"
import { join } from "node:path"
import type { Hooks, PluginInput } from "@opencode-ai/plugin"
import type { Part, UserMessage } from "@opencode-ai/sdk"
import { createPutOffWork, loadOnce, withDeadline } from "../host/async.ts"
import { bundleRoot, claimBundle } from "../host/bundle-claim.ts"
import { guardConfig, guardDispose, guardHook, guardObserver, guardTools } from "../host/guard.ts"
import { createLog, describeError } from "../host/log.ts"
import { findProjectRoot } from "../host/project.ts"
import type { LearningFeature } from "./learning.ts"
import { forgetUnread, noteUnread, unreadByOthers } from "./unread.ts"

export const LEARNED_TOOL = "learned"
export const FORGET_TOOL = "forget"
export const LEARNING_TOOLS = [LEARNED_TOOL, FORGET_TOOL] as const

/** Words with which a user asks for what was learned, or names one. */
const ASKS =
  /\blrn-[0-9a-f]{6}\b|\blearnings\b|\b(?:have|did) you (?:learn|learned|learnt)\b|\bforget (?:the|that|this|your) (?:learning|correction|preference|rule)\b/i

export const asksForLearnings = (text: string): boolean => ASKS.test(text)

const DEADLINE_MS = 1_000
/** Within that, so that the tools are hidden in time when the learnings are not there in time. */
const REMINDER_DEADLINE_MS = 950

type ToolModule = typeof import("./tools.ts")

const textsOf = (parts: readonly Part[]): string[] =>
  parts.flatMap((part) => (part.type === "text" && part.text.trim() !== "" ? [part.text] : []))

const sharesText = (some: readonly Part[], others: readonly Part[]): boolean => {
  const texts = textsOf(some)
  return textsOf(others).some((text) => texts.includes(text))
}

/** Session learning's hooks for one directory of one OpenCode process; the feature is loaded where something is learned. */
export const createLearningHooks = (input: PluginInput): Hooks => {
  const { client, directory, worktree } = input
  const log = createLog(client, "learning")
  const projectRoot = findProjectRoot(directory, worktree)
  const claim = claimBundle({ feature: "learning", directory, projectRoot, bundleRoot })
  const parents = new Map<string, string | undefined>()
  /** What a session's newest command became: the parts of its next message, unless the command fails before that. */
  const expanded = new Map<string, readonly Part[]>()

  const loadFeature = loadOnce(() =>
    import("./learning.ts").then(({ createLearningFeature }) =>
      createLearningFeature(input, { log, projectRoot, bundleRoot, parents }),
    ),
  )
  /** The newest attempt, nothing when it failed. */
  let loading: Promise<LearningFeature | undefined> | undefined
  const load = (): Promise<LearningFeature | undefined> => {
    const started = loadFeature()
    loading = started.catch(() => undefined)
    return started
  }

  const exists = (...path: string[]): boolean => existsSync(join(projectRoot, ".opencode", ...path))
  /** Whether something was learned here, or may have been elsewhere: in the main worktree, or under a name of the user's. */
  const mayKnow = (): boolean =>
    loading !== undefined ||
    exists("state", "learning") ||
    exists("baton.json") ||
    unreadByOthers(projectRoot).length > 0 ||
    statSync(join(worktree, ".git"), { throwIfNoEntry: false })?.isFile() === true

  const isTeaching = async (parts: readonly Part[]): Promise<boolean> => (await import("./detect.ts")).isTeaching(parts)
  /** What teaches something and cannot be learned now is "unread". */
  const learn = async (message: UserMessage, parts: readonly Part[]): Promise<"read" | "unread"> => {
    const outcome = await (await load())?.userMessage(message, parts)
    return outcome === "unread" && (await isTeaching(parts)) ? "unread" : "read"
  }
  const learnFrom = async (message: UserMessage, parts: readonly Part[]): Promise<"read" | "unread"> =>
    // The rest is loaded for a message that teaches something.
    mayKnow() || (await isTeaching(parts)) ? await learn(message, parts) : "read"
  const putOff = createPutOffWork()
  const learnNow = async (message: UserMessage, parts: readonly Part[]): Promise<void> => {
    const reference = { sessionID: message.sessionID, messageID: message.id }
    // The hook may be over before this is, and the process as well.
    noteUnread(projectRoot, reference)
    await putOff.settle()
    if ((await learn(message, parts)) === "read") forgetUnread(projectRoot, reference)
  }
  /** No request waits for this: nothing is known here that could be said with it. */
  const learnLater = async (message: UserMessage, parts: readonly Part[]): Promise<void> => {
    const reference = { sessionID: message.sessionID, messageID: message.id }
    if (!noteUnread(projectRoot, reference)) {
      await learnFrom(message, parts)
      return
    }
    // Other plugins may change the message after this one.
    const asSaid = parts.map((part) => ({ ...part }))
    putOff.add(async () => {
      const outcome = await withDeadline(learnFrom(message, asSaid), DEADLINE_MS)
      if (outcome.kind === "done" && outcome.value === "read") return forgetUnread(projectRoot, reference)
      const error = outcome.kind === "failed" ? { error: describeError(outcome.error) } : {}
      log.error("a message is left for the next process to learn from", {
        ...reference,
        how: outcome.kind === "done" ? outcome.value : outcome.kind,
        ...error,
      })
    })
    return undefined
  }

  let toolModule: ToolModule | undefined
  const tools = guardTools(log, "learned and forget", () => toolModule?.createTools(load))

  const about = ({ sessionID }: { sessionID: string }) => ({ sessionID })
  const hook = (name: string) => ({ name, deadlineMs: DEADLINE_MS })
  return {
    config: guardConfig(log, "learned and forget", async () => {
      if (claim.isHeld()) toolModule = await import("./tools.ts")
    }),
    get tool() {
      return tools()
    },
    "command.execute.before": guardHook(
      log,
      hook("command.execute.before"),
      async ({ sessionID }, { parts }) => {
        if (claim.isHeld()) expanded.set(sessionID, parts)
        return undefined
      },
      about,
    ),
    "chat.message": guardHook(
      log,
      hook("chat.message"),
      async ({ sessionID }, { message, parts }) => {
        const template = expanded.get(sessionID)
        expanded.delete(sessionID)
        if (!claim.isHeld() || (template && sharesText(template, parts))) return undefined
        if (mayKnow() || textsOf(parts).some(asksForLearnings)) await learnNow(message, parts)
        else await learnLater(message, parts)
        return undefined
      },
      about,
    ),
    "chat.params": guardObserver(log, "chat.params", () => {
      putOff.requestPrepared()
      return undefined
    }),
    "experimental.session.compacting": guardHook(
      log,
      hook("experimental.session.compacting"),
      async ({ sessionID }) => {
        await putOff.settle()
        if (claim.isHeld() && mayKnow()) (await load())?.compacting(sessionID)
        return undefined
      },
      about,
    ),
    "experimental.chat.messages.transform": guardHook(
      log,
      hook("experimental.chat.messages.transform"),
      async (_input, { messages }) => {
        if (!claim.isHeld() || !toolModule) return undefined
        const { hideAll } = toolModule
        const hide = (): void => hideAll(messages)
        if (!mayKnow()) return hide
        const reminder = load().then((feature) => feature?.beforeRequest(messages))
        const decided = await withDeadline(reminder, REMINDER_DEADLINE_MS)
        if (decided.kind === "done") return decided.value ?? hide
        const error = decided.kind === "failed" ? { error: describeError(decided.error) } : {}
        log.warn("a request goes without learnings", {
          sessionID: messages[0]?.info.sessionID,
          how: decided.kind,
          ...error,
        })
        return hide
      },
      (_input, { messages }) => ({ sessionID: messages[0]?.info.sessionID }),
      (_input, { messages }) => toolModule?.hideAll(messages),
    ),
    event: guardObserver(log, "event", ({ event }) => {
      switch (event.type) {
        case "session.created":
          parents.set(event.properties.info.id, event.properties.info.parentID)
          return undefined
        case "session.idle":
          return putOff.settle().then(async () => (await loading)?.idle(event.properties.sessionID))
        case "session.status":
          if (event.properties.status.type === "idle") return undefined
          return loading?.then((feature) => feature?.busy(event.properties.sessionID))
        case "session.deleted": {
          const { id } = event.properties.info
          expanded.delete(id)
          return putOff.settle().then(async () => {
            parents.delete(id)
            if (claim.isHeld() && (loading !== undefined || exists("state", "learning")))
              await (await load())?.forget(id)
          })
        }
        default:
          return undefined
      }
    }),
    dispose: guardDispose(log, { instance: client, claim }, async () => {
      await putOff.settle()
      await (await loading)?.stop()
    }),
  }
}
