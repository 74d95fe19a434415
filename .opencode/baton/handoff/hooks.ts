import { existsSync } from "node:fs"
import { join } from "node:path"
import type { Hooks } from "@opencode-ai/plugin"
import type { Core } from "../core/core.ts"
import { lazy } from "../host/async.ts"
import type { Change } from "../host/guard.ts"
import { describeError } from "../host/log.ts"
import { DRAFT_START } from "../host/messages.ts"
import { can } from "../host/port.ts"
import { HANDOFFS_FOLDER, stateRoot } from "../host/project.ts"
import type { StoredMessage } from "../host/sessions.ts"
import type { HandoffSetup } from "./tools.ts"
import { createUserTurns } from "./user-turns.ts"

const MESSAGE_DEADLINE_MS = 3_000
const SHORT_DEADLINE_MS = 1_000
const OWN_COMMAND = /^(?:baton-)?handoff$/

/** The handoff's hooks. They load the feature when they first need it. */
export const createHandoffHooks = (core: Core): Hooks => {
  if (!can(core.input, "drafts")) return {}
  const { projectRoot } = core
  const feature = core.feature("handoff")
  const { log, hook } = feature
  const turns = createUserTurns()

  const load = lazy(async () => {
    const [{ createHandoffFeature }, services] = await Promise.all([import("./handoff.ts"), core.services()])
    return createHandoffFeature(core, services, log)
  })

  const loadAuto = lazy(async () => {
    const [{ createAutoHandoff }, services] = await Promise.all([import("./auto-handoff.ts"), core.services()])
    return createAutoHandoff(core, services, log)
  })
  let isAuto = false

  /** @returns the change that asks the agent to hand over, and whether it has the tool for it */
  const askToHandOver = async (
    sessionID: string,
    messages: StoredMessage[],
  ): Promise<[boolean, Change | undefined]> => {
    if (!isAuto) return [false, undefined]
    const auto = await loadAuto()
    return (await auto.isWanted(sessionID)) ? [true, await auto.ask(sessionID, messages)] : [false, undefined]
  }

  let setup: HandoffSetup | undefined
  const tools = feature.tools("handoff_session and read_session", () => setup?.createTools({ load, turns }))

  return {
    config: feature.config("/handoff and its tools", async (config) => {
      const { createHandoffSetup } = await import("./tools.ts")
      setup = createHandoffSetup({
        projectRoot,
        log,
        notices: (notice) =>
          void core.services().then(
            ({ notices }) => notices(notice),
            (error: unknown) => log.warn("a notice is not shown", { title: notice.title, error: describeError(error) }),
          ),
      })
      setup.registerCommand(config)
      isAuto = (await import("../host/settings.ts")).mayHaveSetting(projectRoot, "autoHandoff")
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
      if (isAuto) (await loadAuto()).userArrived(message.sessionID)
      const isDraft = parts.some((part) => part.type === "text" && part.text.includes(DRAFT_START))
      const isPending = (await load.current)?.isPending(message.sessionID) === true
      return isDraft || isPending ? (await load()).attachFiles(message, parts) : undefined
    }),
    "experimental.chat.messages.transform": hook(
      "experimental.chat.messages.transform",
      SHORT_DEADLINE_MS,
      async (_input, { messages }) => {
        const sessionID = messages[0]?.info.sessionID
        if (!setup || sessionID === undefined) return undefined
        const { offers } = setup
        // A compaction may have removed the draft, whose first line offers read_session: its record still tells.
        const isCompacted = messages.some(({ parts }) => parts.some(({ type }) => type === "compaction"))
        if (isCompacted && !offers.isKnown(sessionID) && existsSync(join(stateRoot(projectRoot), HANDOFFS_FOLDER)))
          if (await (await load()).cameFromHandoff(sessionID)) offers.enable(sessionID)
        const [hasTool, ask] = await askToHandOver(sessionID, messages)
        const addLate = await (await load.current)?.attachLate(sessionID, messages)
        return () => {
          // The tool is there from the first request on: tools that change cost the provider's cache.
          offers.applyTo(messages, hasTool ? ["handoff_session"] : [])
          ask?.()
          addLate?.()
        }
      },
      (_input, { messages }) => setup?.offers.applyTo(messages),
    ),
    "experimental.session.compacting": hook(
      "experimental.session.compacting",
      SHORT_DEADLINE_MS,
      async ({ sessionID }) => {
        if (isAuto) (await loadAuto()).compacting(sessionID)
        return undefined
      },
    ),
    event: feature.observer((event) => {
      if (event.type !== "session.deleted") return undefined
      const { id } = event.properties.info
      turns.forget(id)
      setup?.offers.forget(id)
      void loadAuto.current?.then((auto) => auto?.forget(id))
      return load.current?.then((loaded) => loaded?.forget(id))
    }),
    dispose: feature.dispose(),
  }
}
