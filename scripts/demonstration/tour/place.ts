import { cpSync, mkdirSync, symlinkSync } from "node:fs"
import { delimiter, dirname, join } from "node:path"
import { snapshotTree } from "../../../test/support/folder-tree.ts"
import { type OpenCodeBinary, REPOSITORY } from "../../../test/support/opencode-binary.ts"
import { type RunResult, runProgram } from "../../../test/support/opencode-run.ts"
import { createTestProject, type TestProject } from "../../../test/support/test-project.ts"
import { shortenFolder } from "../write-picture.ts"
import { PROJECT_FILES } from "./story.ts"

/** A user's machine in a temporary folder: a checkout of Baton in ~/baton, a project in ~/my-project, opencode on PATH. */
export type TourPlace = {
  project: TestProject
  /** Runs a program in the project's folder as its user would. */
  run(program: string, ...args: string[]): Promise<CommandSeen>
  /** A terminal's screen on which the project is `~/my-project`, as it is where no folder lies above home. */
  shownScreen(screen: string): string
  /** What lies in the home folder, by relative path, without checkout and project. */
  homePaths(): string[]
}

const quoted = (word: string): string => (/^[\w./~-]+$/.test(word) ? word : `"${word}"`)

/** A command, how it ended, and all that it printed, with home as `~`. */
export type CommandSeen = { command: string; exitCode: number | null; output: string }

const CHECKOUT = [".opencode/plugins", ".opencode/baton", "prompts", "scripts", "package.json"]
/** OpenCode would find our own development tools, since the packages that it needs lie beside them. */
const CONFIG = { lsp: false, formatter: false }
const IDENTITY = ["-c", "user.name=Demo", "-c", "user.email=demo@example.invalid"]

/** npm puts the development tools on PATH; a user has none of them. */
const usersPath = (): string[] =>
  (process.env.PATH ?? "").split(delimiter).filter((folder) => !/\/node_modules\/\.bin$|\/node-gyp-bin$/.test(folder))

/** @param modelURL of the scripted model */
export const createTourPlace = async (binary: OpenCodeBinary, modelURL: string): Promise<TourPlace> => {
  const made = createTestProject({ binary, modelURL, bundle: "none", folder: "home/my-project", config: CONFIG })
  const { home } = made
  const [programs, temporary] = [join(home, ".local", "bin"), join(dirname(home), "tmp")]
  for (const folder of [programs, temporary]) mkdirSync(folder, { recursive: true })
  symlinkSync(binary.path, join(programs, "opencode"))
  for (const part of CHECKOUT) cpSync(join(REPOSITORY, part), join(home, "baton", part), { recursive: true })
  const environment = {
    ...made.environment,
    PATH: [programs, ...usersPath()].join(delimiter),
    TMPDIR: temporary,
    COLORTERM: "truecolor",
  }
  const project = { ...made, environment }
  const runQuietly = async (...argv: [string, ...string[]]): Promise<RunResult> => {
    const result = await runProgram(argv, { project })
    if (result.exitCode !== 0) throw new Error(`${argv.join(" ")} exited ${result.exitCode}: ${result.stderr}`)
    return result
  }
  for (const [path, text] of Object.entries(PROJECT_FILES)) project.write(path, text)
  await runQuietly("git", "add", "-A")
  await runQuietly("git", ...IDENTITY, "commit", "-q", "-m", "A parser for LF")
  const shown = (text: string): string => text.replaceAll(home, "~")
  return {
    project,
    shownScreen: (screen) => shortenFolder(screen, project.directory, "~/my-project"),
    homePaths: () => Object.keys(snapshotTree(home)).filter((path) => !/^(?:baton|my-project)(?:\/|$)/.test(path)),
    run: async (program, ...args) => {
      const path = program.startsWith("~/") ? join(home, program.slice(2)) : program
      const full = args.map((arg) => (arg.startsWith("~/") ? join(home, arg.slice(2)) : arg))
      const { exitCode, stdout, stderr } = await runProgram([path, ...full], { project })
      return { command: [program, ...args].map(quoted).join(" "), exitCode, output: shown(stdout + stderr) }
    },
  }
}
