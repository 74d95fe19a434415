import type { Config, ToolDefinition } from "@opencode-ai/plugin"
import { withDeadline } from "./async.ts"
import type { BundleClaim } from "./bundle-claim.ts"
import { describeError, type Log, type LogExtra } from "./log.ts"

/** What a hook decided to change, put off until it is known to be in time. */
export type Change = () => void

type HookDeadline = {
  /** The hook's name as OpenCode calls it, for the log. */
  name: string
  deadlineMs: number
}

/**
 * Wraps a hook so that OpenCode never sees it fail or wait.
 *
 * A hook that throws ends the user's turn and one that never resolves hangs it (measured on 1.18.33). So the hook only
 * decides; its change is applied here, and not at all when the decision came too late or failed.
 *
 * @param decide reads input and output and returns the change to make, or nothing
 * @param otherwise is done when the decision came too late or failed: what makes OpenCode as it is without the bundle,
 *   where doing nothing does not
 */
export const guardHook =
  <Input, Output>(
    log: Log,
    { name, deadlineMs }: HookDeadline,
    decide: (input: Input, output: Output) => Promise<Change | undefined>,
    about: (input: Input, output: Output) => LogExtra = () => ({}),
    otherwise: (input: Input, output: Output) => void = () => {},
  ) =>
  async (input: Input, output: Output): Promise<void> => {
    try {
      const outcome = await withDeadline(decide(input, output), deadlineMs)
      if (outcome.kind === "done") {
        outcome.value?.()
        return
      }
      otherwise(input, output)
      if (outcome.kind === "late") log.warn("hook ran out of time", { hook: name, deadlineMs, ...about(input, output) })
      else log.error("hook failed", { hook: name, error: describeError(outcome.error), ...about(input, output) })
    } catch (error) {
      log.error("hook failed", { hook: name, error: describeError(error) })
    }
  }

/** The same for a hook that only takes note of something: nothing to apply, nothing to wait for. */
export const guardObserver =
  <Input>(log: Log, name: string, observe: (input: Input) => Promise<void> | undefined) =>
  async (input: Input): Promise<void> => {
    const report = (error: unknown): void => log.error("hook failed", { hook: name, error: describeError(error) })
    try {
      observe(input)?.catch(report)
    } catch (error) {
      report(error)
    }
  }

/**
 * The same for the config hook, which changes the configuration as it goes along.
 *
 * @param what is missing from OpenCode when it fails, for the log
 */
export const guardConfig =
  (log: Log, what: string, setUp: (config: Config) => Promise<void>) =>
  async (config: Config): Promise<void> => {
    try {
      await setUp(config)
    } catch (error) {
      log.error(`cannot set up ${what}`, { hook: "config", error: describeError(error) })
    }
  }

type Tools = Record<string, ToolDefinition>

/**
 * A feature's tools, made when OpenCode asks for them, which is right before the first request and long after the config
 * hook; none when they cannot be made.
 *
 * @param names for the log
 */
export const guardTools = (log: Log, names: string, create: () => Tools | undefined): (() => Tools) => {
  let made: Tools | undefined
  return () => {
    try {
      made ??= create() ?? {}
    } catch (error) {
      log.error(`the tools ${names} are not there`, { error: describeError(error) })
      made = {}
    }
    return made
  }
}

/** `opencode run` waits for dispose on newer versions: it must end no later than 1 s after it would have. */
const DISPOSE_DEADLINE_MS = 700

/** The features of one instance of OpenCode, which end together. */
type Ending = { readonly stops: (() => Promise<void>)[]; ended?: Promise<unknown> }

const ENDINGS = Symbol.for("baton.endings")

/** On globalThis, because two copies of the bundle are two module instances. */
const endingOf = (instance: object): Ending => {
  const shared: typeof globalThis & { [ENDINGS]?: WeakMap<object, Ending> } = globalThis
  shared[ENDINGS] ??= new WeakMap()
  const known = shared[ENDINGS].get(instance)
  if (known) return known
  const made: Ending = { stops: [] }
  shared[ENDINGS].set(instance, made)
  return made
}

/**
 * The dispose hook of one feature. OpenCode calls them one after the other, so that their waits would add up: the first one
 * ends all features, side by side, and the others find their work done or wait for what is left of the same deadline.
 *
 * @param instance what OpenCode hands to every plugin of one instance: its client
 * @param stop saves and delivers what can be within 700 ms; what takes longer goes on alone
 */
export const guardDispose = (
  log: Log,
  { instance, claim }: { instance: object; claim: Pick<BundleClaim, "release"> },
  stop: () => Promise<void>,
): (() => Promise<void>) => {
  const ending = endingOf(instance)
  ending.stops.push(async () => {
    const outcome = await withDeadline(
      Promise.resolve().then(() => stop()),
      DISPOSE_DEADLINE_MS,
    )
    claim.release()
    if (outcome.kind === "failed") log.error("hook failed", { hook: "dispose", error: describeError(outcome.error) })
    if (outcome.kind === "late") log.warn("hook ran out of time", { hook: "dispose", deadlineMs: DISPOSE_DEADLINE_MS })
  })
  return async () => {
    ending.ended ??= Promise.all(ending.stops.map((end) => end()))
    await ending.ended
  }
}
