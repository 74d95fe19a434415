import type { PluginInput } from "@opencode-ai/plugin"
import type { Services } from "../../core/services.ts"
import { describeError, type Log } from "../../host/log.ts"
import { createRequests } from "../../host/requests.ts"
import type { RawEvent } from "../../host/schema.ts"
import { cutText } from "../../host/text.ts"
import type { Observed } from "../events.ts"
import type { Publisher } from "../publisher.ts"
import { createApprovals } from "./approvals.ts"
import type { C2cIdentity } from "./identity.ts"
import { createInbox, parseInbox } from "./inbox.ts"

const COMMAND_DEADLINE_MS = 5_000
const POLL_MS = 30_000
/** While a supervisor is asked. */
const ANSWER_POLL_MS = 2_000
const APPROVAL_MS = 600_000

/** A timer for longer fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

const readMs = (value: string | undefined, fallback: number): number => {
  const ms = Number(value)
  return ms > 0 ? Math.min(ms, LONGEST_TIMER_MS) : fallback
}

/** Connects this OpenCode with c2c: messages for the root session, and its and its subagents' permissions and questions for supervisors. */
export const openC2cSession = ({
  c2c: { program, sessionID: c2cSession, supervisors },
  input: { client, directory },
  services: { run, sessions, state },
  environment,
  root,
  topOf,
  log,
}: {
  c2c: C2cIdentity
  input: Pick<PluginInput, "client" | "directory">
  services: Pick<Services, "run" | "sessions" | "state">
  environment: Readonly<Record<string, string | undefined>>
  root: Publisher["root"]
  topOf: Publisher["topOf"]
  log: Log
}) => {
  const everyMs = readMs(environment.C2C_PLUGIN_POLL_INTERVAL_MS, POLL_MS)
  const timeoutMs = readMs(environment.C2C_PERMISSION_TIMEOUT_MS, APPROVAL_MS)
  let timer: NodeJS.Timeout | undefined
  let polling: Promise<void> | undefined
  let isDue = false
  let isStopped = false
  let lastFailure = ""

  const call = async (...args: readonly string[]): Promise<string | undefined> => {
    const ran = await run([program, ...args], { cwd: directory, deadlineMs: COMMAND_DEADLINE_MS })
    if (ran.kind === "exited" && ran.exitCode === 0) {
      lastFailure = ""
      return ran.stdout
    }
    const reason = ran.kind === "exited" ? `exit ${ran.exitCode}: ${cutText(ran.stderr.trim(), 200)}` : ran.kind
    if (reason !== lastFailure) log.warn("c2c failed", { command: args[0], reason })
    lastFailure = reason
    return undefined
  }

  const requests = createRequests(client)
  const send = (alias: string, text: string): void => void call("send", alias, text)
  const approvals = createApprovals({ c2cSession, supervisors, send, requests, timeoutMs, log })
  const inbox = createInbox({ c2cSession, state, sessions, root, log, now: Date.now })

  const pollOnce = async (): Promise<void> => {
    const output = await call("poll-inbox", "--json")
    try {
      await inbox.receive(parseInbox(output ?? "").filter((message) => !approvals.take(message)))
    } catch (error) {
      log.warn("c2c's inbox was not understood", { error: describeError(error) })
    }
  }

  const schedule = (): void => {
    clearTimeout(timer)
    if (isStopped) return
    timer = setTimeout(poll, approvals.isWaiting() ? Math.min(ANSWER_POLL_MS, everyMs) : everyMs)
    timer.unref()
  }

  const poll = (): void => {
    isDue = polling !== undefined
    polling ??= pollOnce().finally(() => {
      polling = undefined
      if (isDue) poll()
      else schedule()
    })
  }

  schedule()
  return {
    /** Takes an event of any session: the root may change while another one waits for an answer. */
    receive: (observed: Observed, event: RawEvent): void => {
      if (observed.kind !== "session") return
      const { seen, sessionID } = observed
      const isRoot = sessionID === root()?.sessionID
      if (seen.kind === "idle") {
        approvals.endAll(sessionID)
        if (isRoot) poll()
      } else if (seen.kind === "permission-replied" || seen.kind === "question-ended") approvals.ended(seen.id)
      else if (seen.kind === "permission-asked" || seen.kind === "question-asked") {
        const top = topOf(sessionID)
        if (top !== root()?.sessionID || supervisors.length === 0) return
        approvals.asked(event, sessionID, top)
        schedule()
      }
    },
    stop: (): void => {
      isStopped = true
      clearTimeout(timer)
      approvals.endAll()
    },
  }
}

export type C2cSession = ReturnType<typeof openC2cSession>
