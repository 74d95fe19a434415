import { existsSync } from "node:fs"
import { join } from "node:path"
import type { Hooks } from "@opencode-ai/plugin"
import type { Core } from "../core/core.ts"
import { createLruMap, lazy } from "../host/async.ts"
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
  const turns = createLruMap<Turn>()
  return {
    onCommand: (sessionID: string, goal: string): void => turns.set(sessionID, { goal, isComing: true }),
    onMessage: (sessionID: string): void => {
      const turn = turns.get(sessionID)
      if (turn?.isComing) turns.set(sessionID, { ...turn, isComing: false })
      else turns.delete(sessionID)
    },
    goalOf: (sessionID: string): string => turns.get(sessionID)?.goal ?? "",
    /** A model that calls twice makes one handoff; after a failed one it may try again. */
    oncePerTurn: async (sessionID: string, handOver: () => Promise<string>): Promise<string> => {
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

const MESSAGE_DEADLINE_MS = 3_000
const SHORT_DEADLINE_MS = 1_000
const OWN_COMMAND = /^(?:baton-)?handoff$/
/**
 * What every draft begins with, as draft.ts has it, which is loaded with the feature alone: a message without it costs a look
 * at its text and nothing else.
 */
const MARKER = "Continuing work from session "

/** The handoff's hooks; the feature is loaded when one of them is wanted. */
export const createHandoffHooks = (core: Core): Hooks => {
  const { projectRoot } = core
  const feature = core.feature("handoff")
  const { log, hook } = feature
  const turns = createUserTurns()

  const load = lazy(async () => {
    const [{ createHandoffFeature }, services] = await Promise.all([import("./handoff.ts"), core.services()])
    return createHandoffFeature(core, services, log)
  })

  let setup: HandoffSetup | undefined
  const tools = feature.tools("handoff_session and read_session", () => setup?.createTools({ load, turns }))

  return {
    config: feature.config("/handoff and its tools", async (config) => {
      const { createHandoffSetup } = await import("./tools.ts")
      setup = createHandoffSetup({ projectRoot, log })
      setup.registerCommand(config)
    }),
    get tool() {
      return tools()
    },
    "command.execute.before": hook(
      "command.execute.before",
      SHORT_DEADLINE_MS,
      async ({ command, sessionID, arguments: goal }) => {
        if (OWN_COMMAND.test(command)) turns.onCommand(sessionID, goal)
        return undefined
      },
    ),
    "chat.message": hook("chat.message", MESSAGE_DEADLINE_MS, async (_input, { message, parts }) => {
      turns.onMessage(message.sessionID)
      const isDraft = parts.some((part) => part.type === "text" && part.text.includes(MARKER))
      const isPending = (await load.current)?.isPending(message.sessionID) === true
      return isDraft || isPending ? (await load()).userMessage(message, parts) : undefined
    }),
    "experimental.chat.messages.transform": hook(
      "experimental.chat.messages.transform",
      SHORT_DEADLINE_MS,
      async (_input, { messages }) => {
        const sessionID = messages[0]?.info.sessionID
        if (!setup || sessionID === undefined) return undefined
        const { offers } = setup
        // Only what was compacted away cannot be seen in the messages themselves.
        const isCompacted = messages.some(({ parts }) => parts.some(({ type }) => type === "compaction"))
        if (
          isCompacted &&
          !offers.isKnown(sessionID) &&
          existsSync(join(projectRoot, ".opencode", "state", "handoffs"))
        )
          if (await (await load()).isHandedOver(sessionID)) offers.enable(sessionID)
        return () => offers.applyTo(messages)
      },
      (_input, { messages }) => setup?.offers.applyTo(messages),
    ),
    event: feature.observer((event) => {
      if (event.type !== "session.deleted") return undefined
      const { id } = event.properties.info
      turns.forget(id)
      setup?.offers.forget(id)
      return load.current?.then((loaded) => loaded?.forget(id))
    }),
    dispose: feature.dispose(async () => {}),
  }
}
