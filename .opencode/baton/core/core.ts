import { sep } from "node:path"
import type { Hooks } from "@opencode-ai/plugin"
import type { Event } from "@opencode-ai/sdk"
import { createLruMap, type Lazy, type LruMap, lazy, withDeadline } from "../host/async.ts"
import { type Decide, guardConfig, guardGate, guardHook, guardObserver, guardTools } from "../host/guard.ts"
import { createLog, describeError, type Log } from "../host/log.ts"
import type { Host } from "../host/port.ts"
import { bundleRoot, findProjectRoot, hasPendingRecords } from "../host/project.ts"
import { sharedMap } from "../host/shared.ts"
import type { StateFolder } from "../host/state.ts"
import type { Services } from "./services.ts"

type Copy = { bundleRoot: string; token: symbol }

/** The copy that serves, by feature and directory. */
const serving = sharedMap<Copy>("bundle-serving")

const isInside = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}${sep}`)

/**
 * Finds out which copy of the bundle serves a feature: OpenCode loads a global and a project copy side by side, and both would answer
 * every hook. Kept by directory, because one server serves several projects.
 *
 * The copy inside the project takes precedence; otherwise the first one loaded serves. When the same copy is loaded again
 * (OpenCode re-initialises a directory), the new instance takes over.
 */
export const enterCopy = (options: { feature: string; directory: string; projectRoot: string; bundleRoot: string }) => {
  const { feature, directory, projectRoot, bundleRoot } = options
  const key = `${feature}\n${directory}`
  const mine: Copy = { bundleRoot, token: Symbol(feature) }
  const current = serving.get(key)
  const outranks = isInside(bundleRoot, projectRoot)
  if (!current || current.bundleRoot === bundleRoot || outranks) serving.set(key, mine)
  return {
    /** The folder of a copy that was loaded before this one. */
    other: current?.bundleRoot === bundleRoot ? undefined : current?.bundleRoot,
    /** This copy serves. Asked at every hook, since a later copy may take precedence. */
    isActive: (): boolean => serving.get(key)?.token === mine.token,
    release: (): void => {
      if (serving.get(key)?.token === mine.token) serving.delete(key)
    },
  }
}

/** `opencode run` waits for dispose on newer versions, and may end at most 1 s later because of it. */
const DISPOSE_DEADLINE_MS = 700
/** The part of it for the features, which stop in parallel; the rest is for delivering the outbox. */
const STOP_DEADLINE_MS = 400

/** A feature of one directory: its log, whether this copy serves it, and its hooks, which can neither fail nor block OpenCode. */
type Feature = {
  readonly log: Log
  /** This copy of the bundle serves the feature here. Each hook checks this itself. */
  isActive(): boolean
  /** @param fallback see guardHook */
  hook<Input, Output>(
    name: keyof Hooks,
    deadlineMs: number,
    decide: Decide<Input, Output>,
    fallback?: (input: Input, output: Output) => void,
  ): (input: Input, output: Output) => Promise<void>
  /** A hook that may refuse. @param judge returns the reason for the model, or undefined */
  gate<Input, Output>(
    name: keyof Hooks,
    deadlineMs: number,
    judge: (input: Input, output: Output) => Promise<string | undefined>,
  ): (input: Input, output: Output) => Promise<void>
  observer(observe: (event: Event) => Promise<void> | undefined): NonNullable<Hooks["event"]>
  /** @param what the part that OpenCode lacks after a failure, for the log */
  config(
    what: string,
    setUp: (config: Parameters<NonNullable<Hooks["config"]>>[0]) => Promise<void>,
  ): NonNullable<Hooks["config"]>
  /** @param names for the log */
  tools(names: string, create: Parameters<typeof guardTools>[2]): ReturnType<typeof guardTools>
  /** The dispose hook. @param stop saves state within 400 ms; longer work continues in the background */
  dispose(stop?: () => Promise<void>): () => Promise<void>
}

/** One directory of one OpenCode process. */
export type Instance = {
  readonly input: Host
  readonly projectRoot: string
  /** The worktree's top folder, or the directory where there is no git. */
  readonly root: string
}

export type Core = Instance & {
  /** Parents of the sessions that this process saw created; null for none. */
  readonly parents: Pick<LruMap<string | null>, "get">
  /** The state folder; opens it at the first use. */
  readonly state: Lazy<StateFolder>
  readonly services: Lazy<Services>
  /** Resolves when the directory's instance before this one, in the same process, has ended. */
  readonly before: Promise<void>
  feature(name: string): Feature
}

type Disposal = { readonly log: Log; readonly stop: () => Promise<void>; readonly release: () => void }

const createCore = (input: Host, before: Promise<void>): Core & { end(): Promise<void> } => {
  const { client, directory, worktree } = input
  const projectRoot = findProjectRoot(directory, worktree)
  // Outside git OpenCode's worktree is the root of the file system.
  const root = worktree === "/" ? directory : worktree
  const coreLog = createLog(client, "core")
  const state = lazy(async () => {
    const { openState } = await import("../host/state.ts")
    return openState(client, projectRoot, coreLog)
  })
  const services = lazy(async () => {
    const [{ createServices }, opened] = await Promise.all([import("./services.ts"), state()])
    return createServices({ input, projectRoot, state: opened, parents, log: coreLog })
  })
  const parents = createLruMap<string | null>()
  const disposals = new Set<Disposal>()
  let hasLooked = false
  let ended: Promise<void> | undefined

  const stopOne = async ({ log, stop, release }: Disposal): Promise<void> => {
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
    await Promise.all([...disposals].map(stopOne))
    const loaded = await services.current
    await loaded?.outbox.flush(Math.max(0, endsAt - performance.now()))
    loaded?.stop()
    if (cores.get(keyOf(directory))?.input.client === client) cores.delete(keyOf(directory))
  }

  /** Ends all features at the first call: OpenCode disposes them one after the other, so that their waits would add up. */
  const end = (): Promise<void> => {
    ended ??= endAll()
    return ended
  }

  /** Ends one feature, and with the last one all that they share. */
  const endOne = async (feature: Disposal): Promise<void> => {
    if (!ended) await stopOne(feature)
    disposals.delete(feature)
    if (disposals.size === 0) await end()
  }

  /** Delivers the records of an earlier process at the first session, which may work on any task. */
  const deliverPending = (): void => {
    if (hasLooked) return
    hasLooked = true
    if (!hasPendingRecords(projectRoot)) return
    // Creating the services drains the outbox.
    services().catch((error: unknown) => coreLog.error("records are not delivered", { error: describeError(error) }))
  }

  const feature = (name: string): Feature => {
    const log = createLog(client, name)
    const copy = enterCopy({ feature: name, directory, projectRoot, bundleRoot })
    if (copy.other !== undefined) {
      const [served, quiet] = copy.isActive() ? [bundleRoot, copy.other] : [copy.other, bundleRoot]
      log.info("two copies of the bundle are loaded: one serves the project, the other stays quiet", {
        serving: served,
        quiet,
      })
    }
    return {
      log,
      isActive: copy.isActive,
      hook: (hook, deadlineMs, decide, fallback) =>
        guardHook(
          log,
          hook,
          deadlineMs,
          async (given, output) => (copy.isActive() ? decide(given, output) : undefined),
          (given, output) => {
            if (copy.isActive()) fallback?.(given, output)
          },
        ),
      gate: (hook, deadlineMs, judge) =>
        guardGate(log, hook, deadlineMs, async (input, output) => (copy.isActive() ? judge(input, output) : undefined)),
      observer: (observe) =>
        guardObserver(log, "event", ({ event }) => {
          // Versions that do not call dispose (1.2.15, 1.14.41) send this as the last event.
          if (event.type === "server.instance.disposed") return end()
          if (!copy.isActive()) return undefined
          if (event.type === "session.deleted") parents.delete(event.properties.info.id)
          if (event.type === "session.created") {
            const { id, parentID } = event.properties.info
            parents.set(id, parentID ?? null)
            deliverPending()
          }
          return observe(event)
        }),
      config: (what, setUp) =>
        guardConfig(log, what, async (config) => {
          if (copy.isActive()) await setUp(config)
        }),
      tools: (names, create) => guardTools(log, names, create),
      dispose: (stop = async () => {}) => {
        const disposal = { log, stop, release: copy.release }
        disposals.add(disposal)
        return input.endsOneByOne ? () => endOne(disposal) : end
      },
    }
  }

  return { input, projectRoot, root, parents, state, services, before, feature, end }
}

/** Cores by directory. An entry is valid as long as OpenCode's client is the same object, which is created once per instance. */
const cores = sharedMap<ReturnType<typeof createCore>>("cores")

/** Each copy of the bundle has its own. */
const keyOf = (directory: string): string => `${bundleRoot}\n${directory}`

/** Gets the core of a plugin's directory: the same for all features of one instance of OpenCode. */
export const openCore = (input: Host): Core => {
  const key = keyOf(input.directory)
  const known = cores.get(key)
  if (known?.input.client === input.client) return known
  // 1.3.2 restarts a directory without telling its plugins.
  const core = createCore(input, known?.end() ?? Promise.resolve())
  cores.set(key, core)
  return core
}
