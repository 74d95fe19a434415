import type { PluginInput } from "@opencode-ai/plugin"

/** The system's code of a failed file operation, such as ENOENT; undefined for any other error. */
export const errorCode = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined

/** The file, or a folder above it, is not there. */
export const isNotFound = (error: unknown): boolean => ["ENOENT", "ENOTDIR"].includes(errorCode(error) ?? "")

/** The text's beginning. Half a character at the cut would make the request one that providers refuse. */
export const truncate = (text: string, maxCharacters: number): string =>
  text.slice(0, maxCharacters).replace(/[\uD800-\uDBFF]$/, "")

export type LogExtra = Record<string, unknown>

/** Where every branch of the bundle says what it did. Never throws, never waits. */
export type Log = Record<"debug" | "info" | "warn" | "error", (message: string, extra?: LogExtra) => void>

/** For what has nowhere to log to, or says all it has to say itself. */
export const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

const DESCRIPTION_CHARACTERS = 500

/**
 * Plain values for `extra`: an Error does not survive JSON on its own. One line, since zod's messages have many and
 * OpenCode before 1.18 writes them as they are, so that most of the entry stands outside its own line.
 */
export const describeError = (error: unknown): string => {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return text.replaceAll(/\s+/g, " ").trim().slice(0, DESCRIPTION_CHARACTERS)
}

/**
 * A logger that goes to OpenCode's own log file as service `baton.<feature>`.
 *
 * A log call is not awaited: during init an awaited client call deadlocks OpenCode, and a slow log must not hold a
 * hook. A failed one is dropped, since there is nowhere left to report it.
 */
export const createLog = (client: Pick<PluginInput["client"], "app">, feature: string): Log => {
  const service = `baton.${feature}`
  const write =
    (level: keyof Log) =>
    (message: string, extra: LogExtra = {}) => {
      try {
        // 1.18 writes no service to its log file, so that the message itself says who speaks.
        const body = { service, level, message: `[${service}] ${message}`, extra }
        client.app.log({ body }).then(
          () => {},
          () => {},
        )
      } catch {
        // A client that throws synchronously is a client that cannot log.
      }
    }
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") }
}
