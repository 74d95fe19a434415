import type { Log, LogExtra } from "../../.opencode/baton/host/log.ts"

export type LogLine = { level: keyof Log; message: string; extra: LogExtra | undefined }

/** A log that keeps its lines for the test. */
export const createRecordedLog = (): Log & { lines: LogLine[] } => {
  const lines: LogLine[] = []
  const write = (level: keyof Log) => (message: string, extra?: LogExtra) => {
    lines.push({ level, message, extra })
  }
  return { lines, debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") }
}
