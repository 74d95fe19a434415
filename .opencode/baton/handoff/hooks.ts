import { existsSync } from "node:fs"
import { join } from "node:path"
import type { Hooks, PluginInput } from "@opencode-ai/plugin"
import { loadOnce } from "../host/async.ts"
import { bundleRoot, claimBundle } from "../host/bundle-claim.ts"
import { guardConfig, guardDispose, guardHook, guardObserver, guardTools } from "../host/guard.ts"
import { createLog } from "../host/log.ts"
import { findProjectRoot } from "../host/project.ts"
import type { HandoffFeature } from "./handoff.ts"
import type { HandoffSetup } from "./tools.ts"

type Turn = {
  /** What the user typed behind /handoff; empty for nothing. */
  readonly goal: string
  /** Its message has not arrived yet: OpenCode tells of the command before it tells of the message that comes of it. */
  readonly isComing: boolean
  readonly handoff?: Promise<string>
}

const NO_TURN: Turn = { goal: "", isComing: false }

/** What belongs to the newest user message of a session, and ends with the next one. */
export const createUserTurns = () => {
  const turns = new Map<string, Turn>()
  return {
    commandGiven: (sessionID: string, goal: string): void => void turns.set(sessionID, { goal, isComing: true }),
    messageArrived: (sessionID: string): void => {
      const turn = turns.get(sessionID)
      if (turn?.isComing) turns.set(sessionID, { ...turn, isComing: false })
      else turns.delete(sessionID)
    },
    goalOf: (sessionID: string): string => turns.get(sessionID)?.goal ?? "",
    /** A model that calls twice makes one handoff; after a failed one it may try again. */
    handOverOnce: async (sessionID: string, handOver: () => Promise<string>): Promise<string> => {
      const turn = turns.get(sessionID) ?? NO_TURN
      if (turn.handoff) return `This was handed over before, and not a second time.\n\n${await turn.handoff}`
      const handoff = handOver()
      turns.set(sessionID, { ...turn, handoff })
      try {
        return await handoff
      } catch (error) {
        turns.set(sessionID, turn)
        throw error
      }
    },
    forget: (sessionID: string): void => void turns.delete(sessionID),
  }
}

export type UserTurns = ReturnType<typeof createUserTurns>

const MESSAGE_DEADLINE_MS = 5_000
const SHORT_DEADLINE_MS = 1_000
const OWN_COMMAND = /^(?:baton-)?handoff$/
/**
 * What every draft begins with, as draft.ts has it, which is loaded with the feature alone: a message without it costs a look
 * at its text and nothing else.
 */
const MARKER = "Continuing work from session "

/** The handoff's hooks for one directory of one OpenCode process; the feature is loaded when one of them is wanted. */
export const createHandoffHooks = (input: PluginInput): Hooks => {
  const { client, directory, worktree } = input
  const log = createLog(client, "handoff")
  const projectRoot = findProjectRoot(directory, worktree)
  const claim = claimBundle({ feature: "handoff", directory, projectRoot, bundleRoot })
  const turns = createUserTurns()

  const loadFeature = loadOnce(() =>
    import("./handoff.ts").then(({ createHandoffFeature }) =>
      createHandoffFeature(input, { log, projectRoot, bundleRoot }),
    ),
  )
  /** The newest attempt, nothing when it failed. */
  let loading: Promise<HandoffFeature | undefined> | undefined
  const load = (): Promise<HandoffFeature> => {
    const started = loadFeature()
    loading = started.catch(() => undefined)
    return started
  }

  let setup: HandoffSetup | undefined
  const tools = guardTools(log, "handoff_session and read_session", () => setup?.createTools({ load, turns }))

  return {
    config: guardConfig(log, "/handoff and its tools", async (config) => {
      if (!claim.isHeld()) return
      const { createHandoffSetup } = await import("./tools.ts")
      setup = createHandoffSetup({ projectRoot, log })
      setup.registerCommand(config)
    }),
    get tool() {
      return tools()
    },
    "command.execute.before": guardHook(
      log,
      { name: "command.execute.before", deadlineMs: SHORT_DEADLINE_MS },
      async ({ command, sessionID, arguments: goal }) => {
        if (claim.isHeld() && OWN_COMMAND.test(command)) turns.commandGiven(sessionID, goal)
        return undefined
      },
      ({ sessionID }) => ({ sessionID }),
    ),
    "chat.message": guardHook(
      log,
      { name: "chat.message", deadlineMs: MESSAGE_DEADLINE_MS },
      async (_input, { message, parts }) => {
        if (!claim.isHeld()) return undefined
        turns.messageArrived(message.sessionID)
        const isDraft = parts.some((part) => part.type === "text" && part.text.includes(MARKER))
        const isPending = (await loading)?.isPending(message.sessionID) === true
        return isDraft || isPending ? (await load()).userMessage(message, parts) : undefined
      },
      ({ sessionID }) => ({ sessionID }),
    ),
    "experimental.chat.messages.transform": guardHook(
      log,
      { name: "experimental.chat.messages.transform", deadlineMs: SHORT_DEADLINE_MS },
      async (_input, { messages }) => {
        const sessionID = messages[0]?.info.sessionID
        if (!claim.isHeld() || !setup || sessionID === undefined) return undefined
        const { offers } = setup
        // Only what was compacted away cannot be seen in the messages themselves.
        const isCompacted = messages.some(({ parts }) => parts.some(({ type }) => type === "compaction"))
        if (
          isCompacted &&
          !offers.isKnown(sessionID) &&
          existsSync(join(projectRoot, ".opencode", "state", "handoffs"))
        )
          if (await (await load()).isHandedOver(sessionID)) offers.offerReading(sessionID)
        return () => offers.apply(messages)
      },
      (_input, { messages }) => ({ sessionID: messages[0]?.info.sessionID }),
      (_input, { messages }) => setup?.offers.apply(messages),
    ),
    event: guardObserver(log, "event", ({ event }) => {
      if (event.type !== "session.deleted") return undefined
      const { id } = event.properties.info
      turns.forget(id)
      setup?.offers.forget(id)
      return loading?.then((feature) => feature?.forget(id))
    }),
    dispose: guardDispose(log, { instance: client, claim }, async () => {
      await (await loading)?.stop()
    }),
  }
}
