import type { PluginInput } from "@opencode-ai/plugin"
import { cutText, onOneLine } from "./text.ts"

/** The system's error code, such as ENOENT; undefined for other errors. */
export const errorCode = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined

export const isNotFound = (error: unknown): boolean => ["ENOENT", "ENOTDIR"].includes(errorCode(error) ?? "")

/** The file system has no hard links. */
export const hasNoLinks = (error: unknown): boolean =>
  ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"].includes(errorCode(error) ?? "")

export type LogExtra = Record<string, unknown>

/** The log of a feature. Never throws, never waits. */
export type Log = Record<"debug" | "info" | "warn" | "error", (message: string, extra?: LogExtra) => void>

/** Drops everything: for code without a log, or code that reports by itself. */
export const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

const DESCRIPTION_CHARACTERS = 500

/**
 * Describes an error for `extra`, since an Error does not survive JSON. On one line, since OpenCode before 1.18 writes the
 * line breaks of zod's messages unchanged, and the rest of the entry would leave its log line.
 */
export const describeError = (error: unknown): string => {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return cutText(onOneLine(text), DESCRIPTION_CHARACTERS)
}

/**
 * Creates a logger that writes to OpenCode's own log file as service `baton.<feature>`.
 *
 * Calls are not awaited: an awaited client call during init deadlocks OpenCode, and a slow log must not block a hook.
 * Failed calls are dropped, since there is nowhere else to report them.
 */
export const createLog = (client: Pick<PluginInput["client"], "app">, feature: string): Log => {
  const service = `baton.${feature}`
  const write =
    (level: keyof Log) =>
    (message: string, extra: LogExtra = {}) => {
      try {
        // 1.18 does not write the service to its log file, so the message carries it.
        const body = { service, level, message: `[${service}] ${message}`, extra }
        client.app.log({ body }).then(
          () => {},
          () => {},
        )
      } catch {
        // A client that throws synchronously cannot log.
      }
    }
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") }
}
