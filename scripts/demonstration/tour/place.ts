import { cpSync, mkdirSync, symlinkSync } from "node:fs"
import { delimiter, dirname, join } from "node:path"
import { snapshotTree } from "../../../test/support/files/folder-tree.ts"
import { type OpenCodeBinary, QUICK_START, REPOSITORY } from "../../../test/support/opencode/opencode-binary.ts"
import { runProgram } from "../../../test/support/opencode/opencode-run.ts"
import { eventually } from "../../../test/support/opencode/opencode-server.ts"
import { createTestProject, type TestProject } from "../../../test/support/opencode/test-project.ts"
import { isTmuxHere, startTerminal, startTui } from "../../../test/support/opencode/tui.ts"
import { ANSWERS, PROJECT_FILES, SAID } from "./story.ts"

/** A command, its exit code, and its whole output, with home as `~`. */
export type CommandSeen = { command: string; exitCode: number | null; output: string }

const CHECKOUT = [
  ".opencode/plugins",
  ".opencode/baton",
  ".opencode/pass-over.json",
  "prompts",
  "scripts",
  "package.json",
]
/** Keeps OpenCode from using our development tools, which lie beside the packages that it needs. */
const CONFIG = { lsp: false, formatter: false }
const BATON = ".opencode/baton/bin/baton"

const quoted = (word: string): string => (/^[\w./~-]+$/.test(word) ? word : `"${word}"`)

/** PATH without the development tools that npm adds. */
const usersPath = (): string[] =>
  (process.env.PATH ?? "").split(delimiter).filter((folder) => !/\/node_modules\/\.bin$|\/node-gyp-bin$/.test(folder))

/**
 * A user's machine in a temporary folder: a checkout of Baton in ~/baton, a project in ~/my-project, opencode on PATH.
 *
 * @param modelURL of the scripted model
 */
export const createTourPlace = (binary: OpenCodeBinary, modelURL: string) => {
  const options = { bundle: "none", folder: "home/my-project", config: CONFIG, files: PROJECT_FILES } as const
  const made = createTestProject({ binary, modelURL, ...options })
  const { home, directory } = made
  const [programs, TMPDIR] = [join(home, ".local", "bin"), join(dirname(home), "tmp")]
  for (const folder of [programs, TMPDIR]) mkdirSync(folder, { recursive: true })
  symlinkSync(binary.path, join(programs, "opencode"))
  for (const part of CHECKOUT) cpSync(join(REPOSITORY, part), join(home, "baton", part), { recursive: true })
  const PATH = [programs, ...usersPath()].join(delimiter)
  const environment = { ...made.environment, ...QUICK_START, PATH, TMPDIR, COLORTERM: "truecolor" }
  const project: TestProject = { ...made, environment }
  return {
    project,
    /** Runs a program in the project's folder as its user would. */
    run: async (...argv: string[]): Promise<CommandSeen> => {
      const inHome = argv.map((word) => (word.startsWith("~/") ? join(home, word.slice(2)) : word))
      const { exitCode, stdout, stderr } = await runProgram(inHome, { project })
      return { command: argv.map(quoted).join(" "), exitCode, output: (stdout + stderr).replaceAll(home, "~") }
    },
    /** A terminal's screen that shows the project as `~/my-project`, in as many columns. */
    shownScreen: (screen: string): string => screen.replaceAll(directory, "~/my-project".padEnd(directory.length)),
    /** Relative paths in the home folder, without checkout and project. */
    homePaths: () => Object.keys(snapshotTree(home)).filter((path) => !/^(?:baton|my-project)(?:\/|$)/.test(path)),
  }
}

export type TourPlace = ReturnType<typeof createTourPlace>

/** Size of the tour's terminal in columns and rows. */
export const TERMINAL = { width: 104, height: 34 }

/** Far longer than a turn takes on a busy machine. */
const ANSWER_DEADLINE_MS = 120_000
const IDLE = /^(?![\s\S]*esc interrupt)/

/** The session in which the newest handoff arrived. */
const newSession = ({ run }: TourPlace): Promise<string> =>
  eventually("the handoff's arrival", async () => {
    const { output } = await run(BATON, "handoffs")
    return / → (ses_\w+)/.exec(output)?.[1]
  })

/** A conversation in the TUI; the user's view is the coloured screen, as tmux captures it. */
export const converseInTui = async (binary: OpenCodeBinary, place: TourPlace) => {
  const tui = await startTui(binary, place.project, TERMINAL)
  const shown = (): string => place.shownScreen(tui.screen({ colours: true }))
  const answered = async (answer: string): Promise<string> => {
    await tui.shows(answer, ANSWER_DEADLINE_MS)
    await tui.shows(IDLE, ANSWER_DEADLINE_MS)
    return shown()
  }
  return {
    /** Sends the text and waits for an answer with these words. @returns the output that the user then sees */
    say: async (text: string, answer: string): Promise<string> => {
      tui.type(text)
      await tui.shows(text.split("\n").at(-1) ?? "")
      tui.press("Enter")
      return await answered(answer)
    },
    /** Hands over, and sends the draft. @returns the draft as seen, the new session's id, and the output after its answer */
    handOver: async (goal: string) => {
      await tui.send(`/handoff ${goal}`)
      await tui.shows("Handoff Ready", ANSWER_DEADLINE_MS)
      await tui.shows("gathered by program")
      // The prompt shows the end of a long draft; its beginning says more.
      tui.press("Home")
      await tui.shows("Continuing work from session")
      const draft = shown()
      tui.press("Enter")
      return { draft, handedTo: await newSession(place), begun: answered(ANSWERS.begun) }
    },
    /** Ends OpenCode as a user does; `stop` by any means. */
    end: () => tui.quit("C-c"),
    stop: () => tui.stop(),
  }
}

/** A user's conversation with the agent, in OpenCode's TUI or by one `opencode run` after the other. */
export type Conversation = Awaited<ReturnType<typeof converseInTui>>

/** A conversation by `opencode run`, each message in its own process; the user's view is the output. */
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
    end: async () => {},
    stop: async () => {},
  }
}

/** Runs `baton observe` in a terminal. @returns its coloured screen once it shows the expected text */
const watchInTerminal = async ({ project }: TourPlace, expected: RegExp): Promise<string> => {
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

/** Watches by `baton observe`; where there is no tmux, without a terminal, in which it prints once. @returns what it shows */
export const watch = (place: TourPlace, expected: RegExp): Promise<string> => {
  if (isTmuxHere()) return watchInTerminal(place, expected)
  return eventually("the agent at work", async () => {
    const { output } = await place.run(BATON, "observe")
    return expected.test(output) ? output : undefined
  })
}
