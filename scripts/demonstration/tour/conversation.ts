import type { OpenCodeBinary } from "../../../test/support/opencode-binary.ts"
import { eventually } from "../../../test/support/opencode-server.ts"
import { startTui } from "../../../test/support/tui.ts"
import type { TourPlace } from "./place.ts"
import { ANSWERS, SAID } from "./story.ts"

/** A user who speaks with the agent, in OpenCode's TUI or by one `opencode run` after the other. */
export type Conversation = {
  /** Says it and waits for an answer with these words. @returns what the user then sees */
  say(text: string, answer: string): Promise<string>
  /**
   * Types /handoff and sends the draft to the new session.
   *
   * @returns the draft as the user sees it, the new session's id, and what the user sees when that has answered
   */
  handOver(goal: string): Promise<{ draft: string; handedTo: string; begun: Promise<string> }>
  /** Ends OpenCode, as a user does. */
  end(): Promise<void>
  /** Ends it in any way. */
  stop(): Promise<void>
}

/** What the terminal of the tour shows, in columns and rows. */
export const TERMINAL = { width: 104, height: 34 }

/** Far more than a turn takes on a machine that has other things to do. */
const ANSWER_DEADLINE_MS = 120_000
const IDLE = /^(?![\s\S]*esc interrupt)/

/** The session that the newest handoff has arrived in. */
const newSession = ({ run }: TourPlace): Promise<string> =>
  eventually("the handoff's arrival", async () => {
    const { output } = await run(".opencode/baton/bin/baton", "handoffs")
    return / → (ses_\w+)/.exec(output)?.[1]
  })

/** In the TUI; what the user sees is the screen with its colours, as tmux gives it. */
export const converseInTui = async (binary: OpenCodeBinary, place: TourPlace): Promise<Conversation> => {
  const tui = await startTui(binary, place.project, TERMINAL)
  const answered = async (answer: string): Promise<string> => {
    await tui.shows(answer, ANSWER_DEADLINE_MS)
    await tui.shows(IDLE, ANSWER_DEADLINE_MS)
    return place.shownScreen(tui.screen({ colours: true }))
  }
  return {
    say: async (text, answer) => {
      tui.type(text)
      await tui.shows(text.split("\n").at(-1) ?? "")
      tui.press("Enter")
      return await answered(answer)
    },
    handOver: async (goal) => {
      await tui.send(`/handoff ${goal}`)
      await tui.shows("Handoff Ready", ANSWER_DEADLINE_MS)
      await tui.shows("gathered by program")
      // The prompt shows the end of a long draft; its beginning tells more.
      tui.press("Home")
      await tui.shows("Continuing work from session")
      const draft = place.shownScreen(tui.screen({ colours: true }))
      tui.press("Enter")
      return { draft, handedTo: await newSession(place), begun: answered(ANSWERS.begun) }
    },
    end: () => tui.quit("C-c"),
    stop: () => tui.stop(),
  }
}

const nothing = async (): Promise<void> => undefined

/** By `opencode run`, where each message is a process of its own; what the user sees is what it prints. */
export const converseByRun = (place: TourPlace): Conversation => {
  let isContinued = false
  const speak = async (answer: string, ...args: string[]): Promise<string> => {
    const { exitCode, output } = await place.run("opencode", "run", ...args)
    if (exitCode !== 0 || !output.includes(answer))
      throw new Error(`opencode run exited ${exitCode}; expected "${answer}", received ${output}`)
    return output
  }
  return {
    say: (text, answer) => {
      const args = isContinued ? ["--continue", text] : [text]
      isContinued = true
      return speak(answer, ...args)
    },
    handOver: async (goal) => {
      const draft = await speak(ANSWERS.handed, "--continue", "--command", "handoff", goal)
      const handedTo = await newSession(place)
      return { draft, handedTo, begun: speak(ANSWERS.begun, "--session", handedTo, SAID.go) }
    },
    end: nothing,
    stop: nothing,
  }
}
