import type { Hooks, PluginInput } from "@opencode-ai/plugin"
import type { Event } from "@opencode-ai/sdk"
import { type Lazy, lazy, withDeadline } from "../host/async.ts"
import { type Change, guardConfig, guardHook, guardObserver, guardTools } from "../host/guard.ts"
import { createLog, describeError, type Log } from "../host/log.ts"
import { bundleRoot, findProjectRoot } from "../host/project.ts"
import { hasPendingRecords } from "../ledger/pending-records.ts"
import { claimBundle } from "./claim.ts"
import type { Services } from "./services.ts"

/** `opencode run` waits for dispose on newer versions: it must end no later than 1 s after it would have. */
const DISPOSE_DEADLINE_MS = 700
/** Of that, for the features side by side; the rest delivers what they left in the outbox. */
const STOP_DEADLINE_MS = 400

type Decide<Input, Output> = (input: Input, output: Output) => Promise<Change | undefined>

/** One feature of one directory: its log, its claim, and its hooks, which can neither fail nor hold up OpenCode. */
export type Feature = {
  readonly log: Log
  /** Whether this copy of the bundle serves the feature here. Every hook asks by itself. */
  isActive(): boolean
  /** @param fallback see guardHook */
  hook<Input, Output>(
    name: keyof Hooks,
    deadlineMs: number,
    decide: Decide<Input, Output>,
    fallback?: (input: Input, output: Output) => void,
  ): (input: Input, output: Output) => Promise<void>
  observer(observe: (event: Event) => Promise<void> | undefined): NonNullable<Hooks["event"]>
  /** @param what is missing from OpenCode when it fails, for the log */
  config(
    what: string,
    setUp: (config: Parameters<NonNullable<Hooks["config"]>>[0]) => Promise<void>,
  ): NonNullable<Hooks["config"]>
  /** @param names for the log */
  tools(names: string, create: Parameters<typeof guardTools>[2]): ReturnType<typeof guardTools>
  /** The dispose hook. @param stop saves what can be saved within 400 ms; what takes longer goes on alone */
  dispose(stop: () => Promise<void>): () => Promise<void>
}

/** One directory of one OpenCode process. */
export type Instance = {
  readonly input: PluginInput
  readonly projectRoot: string
  /** The worktree's top folder, or the directory where there is no git. */
  readonly root: string
}

/** What the features of an instance share. */
export type Core = Instance & {
  /** Everything with a state: loaded at first use, once. */
  readonly services: Lazy<Services>
  feature(name: string): Feature
}

type Served = { readonly log: Log; readonly stop: () => Promise<void>; readonly release: () => void }

const createCore = (input: PluginInput): Core & { end(): Promise<void> } => {
  const { client, directory, worktree } = input
  const projectRoot = findProjectRoot(directory, worktree)
  // Outside git OpenCode calls the file system's root the worktree.
  const root = worktree === "/" ? directory : worktree
  const coreLog = createLog(client, "core")
  const report = (message: string, error: unknown): void => coreLog.error(message, { error: describeError(error) })
  const services = lazy(async () => {
    const { createServices } = await import("./services.ts")
    return createServices({ input, projectRoot, log: coreLog })
  })
  const served: Served[] = []
  let hasLooked = false
  let ended: Promise<void> | undefined

  const stopOne = async ({ log, stop, release }: Served): Promise<void> => {
    const outcome = await withDeadline(
      Promise.resolve().then(() => stop()),
      STOP_DEADLINE_MS,
    )
    release()
    if (outcome.kind === "failed") log.error("hook failed", { hook: "dispose", error: describeError(outcome.error) })
    if (outcome.kind === "late") log.warn("hook ran out of time", { hook: "dispose", deadlineMs: STOP_DEADLINE_MS })
  }

  const endAll = async (): Promise<void> => {
    const endsAt = performance.now() + DISPOSE_DEADLINE_MS
    await Promise.all(served.map(stopOne))
    const loaded = await services.current
    await loaded?.outbox.flush(Math.max(0, endsAt - performance.now()))
    loaded?.outbox.stop()
    if (cores.get(directory)?.input.client === client) cores.delete(directory)
  }

  /** OpenCode ends its features one after the other, so that their waits would add up: the first call ends them all. */
  const end = (): Promise<void> => {
    ended ??= endAll()
    return ended
  }

  /** Records that an earlier process left are delivered with the first session, whatever it works on. */
  const deliverPending = (): void => {
    if (hasLooked) return
    hasLooked = true
    if (hasPendingRecords(projectRoot)) services().catch((error: unknown) => report("records are not delivered", error))
  }

  const feature = (name: string): Feature => {
    const log = createLog(client, name)
    const claim = claimBundle({ feature: name, directory, projectRoot, bundleRoot })
    if (claim.other !== undefined) {
      const [serving, quiet] = claim.isActive() ? [bundleRoot, claim.other] : [claim.other, bundleRoot]
      log.info("two copies of the bundle are loaded: one serves the project, the other stays quiet", { serving, quiet })
    }
    return {
      log,
      isActive: claim.isActive,
      hook: (hook, deadlineMs, decide, fallback) =>
        guardHook(
          log,
          hook,
          deadlineMs,
          async (given, output) => (claim.isActive() ? decide(given, output) : undefined),
          (given, output) => {
            if (claim.isActive()) fallback?.(given, output)
          },
        ),
      observer: (observe) =>
        guardObserver(log, "event", ({ event }) => {
          // Where it calls no dispose (1.2.15, 1.14.41) this is the last that is heard of OpenCode.
          if (event.type === "server.instance.disposed") return end()
          if (!claim.isActive()) return undefined
          if (event.type === "session.created") deliverPending()
          return observe(event)
        }),
      config: (what, setUp) =>
        guardConfig(log, what, async (config) => {
          if (claim.isActive()) await setUp(config)
        }),
      tools: (names, create) => guardTools(log, names, create),
      dispose: (stop) => {
        served.push({ log, stop, release: claim.release })
        return end
      },
    }
  }

  return { input, projectRoot, root, services, feature, end }
}

/** By directory; an entry holds as long as OpenCode's client is the same object, which is made once an instance. */
const cores = new Map<string, ReturnType<typeof createCore>>()

/** The core of a plugin's directory: the same for all features of one instance of OpenCode. */
export const openCore = (input: PluginInput): Core => {
  const known = cores.get(input.directory)
  if (known?.input.client === input.client) return known
  const core = createCore(input)
  cores.set(input.directory, core)
  // 1.3.2 starts a directory anew without telling the plugins it had.
  void known?.end()
  return core
}
