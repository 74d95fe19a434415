import { basename } from "node:path"
import { describeError, type Log } from "../host/log.ts"
import { createProcessRunner, type RunProcess } from "../host/process.ts"
import { accountFolder } from "../host/project.ts"
import { accountSettingsPath, readAccountSettings } from "../host/settings.ts"
import { cutText } from "../host/text.ts"
import { readWaits, type Wait } from "./observe/waits.ts"

/** A request, as the command and `baton waiting --json` tell it. */
export type WaitEntry = Wait & { readonly project: string; readonly folder: string; readonly pid: number }

const DEADLINE_MS = 10_000
/** A request that a program answers within this time, as `opencode run` does, is not told. */
const SETTLING_MS = 500
const MAX_REPORTED = 1_000

/** Names of the variables by field: `rootSession` is BATON_WAITING_ROOT_SESSION. */
const toEnvironment = (entry: WaitEntry): Record<string, string> =>
  Object.fromEntries(
    Object.entries(entry).flatMap(([name, value]) =>
      typeof value === "string" || typeof value === "number"
        ? // No variable can hold NUL.
          [[`BATON_WAITING_${name.replaceAll(/[A-Z]/g, "_$&").toUpperCase()}`, String(value).replaceAll("\0", "")]]
        : [],
    ),
  )

type Deps = {
  readonly projectRoot: string
  /** The state to tell of, of this process. */
  readonly state: () => unknown
  readonly log: Log
  readonly run?: RunProcess
  readonly settlingMs?: number
}

const runOne = async (entry: WaitEntry, { log, run = createProcessRunner({ shell: undefined }) }: Deps) => {
  const { onWaiting } = await readAccountSettings()
  if (onWaiting === undefined) return
  const options = { cwd: accountFolder(), deadlineMs: DEADLINE_MS, stdin: `${JSON.stringify(entry)}\n` }
  const ran = await run(onWaiting, { ...options, env: toEnvironment(entry) })
  const about = { program: onWaiting[0], session: entry.session }
  if (ran.kind === "exited" && ran.exitCode === 0) return log.info("onWaiting was run", about)
  const reason = ran.kind === "exited" ? `exit ${ran.exitCode}: ${cutText(ran.stderr.trim(), 200)}` : ran.kind
  log.warn("onWaiting failed", { ...about, reason: ran.kind === "not-started" ? ran.cause : reason })
}

/** Runs the account's command once for each request that has begun to wait, if it still waits after a moment. */
export const createWaitingCommand = (deps: Deps) => {
  const { projectRoot, state, log, settlingMs = SETTLING_MS } = deps
  const reported = new Set<string>()

  const tell = (id: string): void => {
    const wait = readWaits(state()).find((each) => each.id === id)
    if (!wait) return
    const entry = { project: basename(projectRoot), folder: projectRoot, pid: process.pid, ...wait }
    runOne(entry, deps).catch((error: unknown) =>
      log.warn("onWaiting was not run", { settings: accountSettingsPath(), error: describeError(error) }),
    )
  }

  return {
    /** Looks at the state. Never throws, never waits. */
    look: (): void => {
      for (const { id } of readWaits(state())) {
        if (id === undefined || reported.has(id)) continue
        reported.add(id)
        for (const oldest of reported) if (reported.size > MAX_REPORTED) reported.delete(oldest)
        setTimeout(() => tell(id), settlingMs).unref()
      }
    },
  }
}
