import { spawn } from "node:child_process"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { eventually } from "../../../test/support/opencode-server.ts"
import { startTerminal } from "../../../test/support/tui.ts"
import { TERMINAL } from "./conversation.ts"
import type { TourPlace } from "./place.ts"

const BATON = ".opencode/baton/bin/baton"

/** `baton observe --web`, as a user has it running beside the work. */
export type WebObserver = {
  url: string
  /** Ends it with Ctrl-C's signal. @returns its exit code */
  stop(): Promise<number | null>
}

export const startWebObserver = async ({ project }: TourPlace): Promise<WebObserver> => {
  const { directory, environment } = project
  const child = spawn(join(directory, BATON), ["observe", "--web"], {
    cwd: directory,
    env: environment,
    stdio: ["ignore", "pipe", "inherit"],
  })
  const ended = new Promise<number | null>((resolve) => child.on("exit", resolve))
  for await (const line of createInterface(child.stdout)) {
    const url = /http:\/\/127\.0\.0\.1:\d+\//.exec(line)?.[0]
    if (!url) continue
    return {
      url,
      stop: () => {
        child.kill("SIGINT")
        return ended
      },
    }
  }
  throw new Error(`baton observe --web ended with ${await ended} and said no address`)
}

/** `baton observe` in a terminal. @returns its screen, with its colours, once it shows this */
export const watchInTerminal = async ({ project }: TourPlace, expected: RegExp): Promise<string> => {
  const terminal = startTerminal([BATON, "observe"], project, TERMINAL)
  try {
    await terminal.shows(expected)
    const screen = terminal.screen({ colours: true })
    await terminal.quit("q")
    return screen
  } finally {
    await terminal.stop()
  }
}

/** `baton observe` where there is no terminal: it prints once, and is asked until it prints this. */
export const watchWithoutTerminal = ({ run }: TourPlace, expected: RegExp): Promise<string> =>
  eventually("the agent at work", async () => {
    const { output } = await run(BATON, "observe")
    return expected.test(output) ? output : undefined
  })
