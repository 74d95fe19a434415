import type { Config, ToolDefinition } from "@opencode-ai/plugin"
import { withDeadline } from "./async.ts"
import { describeError, type Log, type LogExtra } from "./log.ts"

/** A change that a hook decided on; applied only if the decision was in time. */
export type Change = () => void

export type Decide<Input, Output> = (input: Input, output: Output) => Promise<Change | undefined>

const sessionOf = (input: unknown, output: unknown): LogExtra => {
  const given: unknown = Reflect.get(Object(input), "sessionID")
  const messages: unknown = Reflect.get(Object(output), "messages")
  const first: unknown = Array.isArray(messages) ? Reflect.get(Object(messages[0]), "info") : undefined
  return { sessionID: given ?? Reflect.get(Object(first), "sessionID") }
}

/** The name of the agent for which a model is asked: versions give `chat.params` the name, or the agent. */
export const agentName = (agent: unknown): string =>
  String(typeof agent === "string" ? agent : Reflect.get(Object(agent), "name"))

/**
 * Wraps a hook so that OpenCode never sees it fail or wait.
 *
 * A hook that throws ends the user's turn, and one that never resolves hangs it (measured on 1.18.33). So the hook only
 * decides; its change is applied here, unless the decision failed or came too late.
 *
 * @param name OpenCode's name of the hook, for the log
 * @param decide reads input and output and returns the change to make, or undefined
 * @param fallback runs after a late or failed decision, if doing nothing would differ from OpenCode without the bundle
 */
export const guardHook =
  <Input, Output>(
    log: Log,
    name: string,
    deadlineMs: number,
    decide: Decide<Input, Output>,
    fallback: (input: Input, output: Output) => void = () => {},
  ) =>
  async (input: Input, output: Output): Promise<void> => {
    try {
      const outcome = await withDeadline(decide(input, output), deadlineMs)
      if (outcome.kind === "done") {
        outcome.value?.()
        return
      }
      fallback(input, output)
      const about = { hook: name, ...sessionOf(input, output) }
      if (outcome.kind === "late") log.warn("hook ran out of time", { ...about, deadlineMs })
      else log.error("hook failed", { ...about, error: describeError(outcome.error) })
    } catch (error) {
      log.error("hook failed", { hook: name, error: describeError(error) })
    }
  }

/**
 * Wraps a hook that may refuse, which in OpenCode means to throw. A failure or delay of its own refuses nothing.
 *
 * @param judge returns the reason for the model, or undefined
 */
export const guardGate = <Input, Output>(
  log: Log,
  name: string,
  deadlineMs: number,
  judge: (input: Input, output: Output) => Promise<string | undefined>,
) => {
  return async (input: Input, output: Output): Promise<void> => {
    let refusal: string | undefined
    const decide = async (): Promise<Change> => {
      const reason = await judge(input, output)
      return () => {
        refusal = reason
      }
    }
    await guardHook(log, name, deadlineMs, decide)(input, output)
    if (refusal !== undefined) throw new Error(refusal)
  }
}

/** Wraps a hook that only observes: there is no change to apply and nothing to wait for. */
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
 * Wraps the config hook, which changes the configuration while it runs.
 *
 * @param what the part that OpenCode lacks after a failure, for the log
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
 * Creates a feature's tools when OpenCode asks for them, right before the first request and long after the config hook.
 * Returns none while they cannot be created.
 *
 * @param names for the log
 */
export const guardTools = (log: Log, names: string, create: () => Tools | undefined): (() => Tools) => {
  let made: Tools | undefined
  let hasFailed = false
  return () => {
    try {
      made ??= create()
    } catch (error) {
      if (!hasFailed) log.error(`the tools ${names} are not there`, { error: describeError(error) })
      hasFailed = true
    }
    return made ?? {}
  }
}
