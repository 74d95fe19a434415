import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { isAlive } from "../../../.opencode/baton/host/process-identity.ts"
import type { OpenCodeBinary } from "./opencode-binary.ts"
import { eventually } from "./opencode-server.ts"
import type { TestProject } from "./test-project.ts"

type Size = { width?: number; height?: number }

const START_DEADLINE_MS = 60_000
const SCREEN_DEADLINE_MS = 30_000
/** Each read of the screen starts a program. */
const SCREEN_REST_MS = 100
/** 1.2.15 drops keys typed while a view is being drawn. */
const TYPING_TRIES = 4
const TYPED_DEADLINE_MS = 3_000
const STOP_DEADLINE_MS = 10_000

export const isTmuxHere = (): boolean => {
  try {
    execFileSync("tmux", ["-V"], { stdio: "pipe" })
    return true
  } catch {
    return false
  }
}

let terminals = 0

/** Starts a program in tmux, on its own server and socket, in the project's folder. */
export const startTerminal = (
  argv: readonly [string, ...string[]],
  project: TestProject,
  { width = 140, height = 50 }: Size = {},
) => {
  const socket = join(project.home, `tmux-${++terminals}.sock`)
  const environment = { ...project.environment, TERM: "xterm-256color", LANG: "C.UTF-8" }
  const tmux = (...args: string[]): string =>
    execFileSync("tmux", ["-u", "-S", socket, ...args], { env: environment, encoding: "utf8", stdio: "pipe" })
  const size = ["-x", String(width), "-y", String(height)]
  tmux("-f", "/dev/null", "new-session", "-d", "-s", "tui", ...size, "-c", project.directory, ...argv)
  const pid = Number(tmux("list-panes", "-t", "tui", "-F", "#{pane_pid}"))
  const ended = () => eventually("the end of the program", () => (isAlive(pid) ? undefined : true), STOP_DEADLINE_MS)
  /** The visible screen as text, or with the colours as escape sequences. */
  const screen = ({ colours = false } = {}): string =>
    tmux("capture-pane", "-p", ...(colours ? ["-e"] : []), "-t", "tui")
  /** Resolves with the screen once it shows the text. */
  const shows = async (text: string | RegExp, deadlineMs = SCREEN_DEADLINE_MS): Promise<string> => {
    let last = ""
    const look = (): string | undefined => {
      last = screen()
      return (typeof text === "string" ? last.includes(text) : text.test(last)) ? last : undefined
    }
    try {
      return await eventually(`${text} on the screen`, look, deadlineMs, SCREEN_REST_MS)
    } catch (cause) {
      throw new Error(`the screen does not show ${text}:\n${last}`, { cause })
    }
  }
  /** Types text as a keyboard would; a line break in it is not Enter. */
  const type = (text: string): void => void tmux("send-keys", "-t", "tui", "-l", "--", text)
  /** Presses a key by its tmux name: Enter, Escape, C-c. */
  const press = (key: string): void => void tmux("send-keys", "-t", "tui", key)
  return {
    pid,
    screen,
    shows,
    type,
    press,
    /** Types a line, waits until the prompt shows it, and presses Enter. */
    send: async (line: string): Promise<void> => {
      for (let tries = 1; ; tries++) {
        type(line)
        try {
          await shows(line, TYPED_DEADLINE_MS)
          break
        } catch (error) {
          if (tries === TYPING_TRIES) throw error
        }
      }
      press("Enter")
    },
    /** Presses the key that quits the program, and waits for its end. */
    quit: async (key: string): Promise<void> => {
      press(key)
      await ended()
    },
    /** Closes the terminal and waits for the program's end; does nothing if it has ended. */
    stop: async (): Promise<void> => {
      if (!isAlive(pid)) return
      tmux("kill-server")
      try {
        await ended()
      } catch {
        process.kill(pid, "SIGKILL")
      }
    },
  }
}

/** A program in a terminal that only the test sees. */
export type TestTerminal = ReturnType<typeof startTerminal>

/** Starts OpenCode's real TUI and waits until it accepts input. */
export const startTui = async (
  binary: OpenCodeBinary,
  project: TestProject,
  size: Size = {},
): Promise<TestTerminal> => {
  const tui = startTerminal([binary.path], project, size)
  try {
    await tui.shows("Ask anything", START_DEADLINE_MS)
  } catch (error) {
    await tui.stop()
    throw error
  }
  return tui
}
