/**
 * The OS boundary of a pass whose policy says `"sandbox": "os"`: its shell commands write in the pass's sandbox and in a temporary folder
 * of their own, and nowhere else. bubblewrap holds it on Linux, Seatbelt on macOS.
 *
 * OpenCode judges a command by its text, asks `shell.env` for the environment right before it starts the shell, and starts
 * `$SHELL -c COMMAND`. So the text stays, for the user's rules, and the shell itself is led into the boundary by a start-up file (bash
 * reads BASH_ENV, zsh a file in ZDOTDIR). A shell that reads neither fails at the line that `guard` puts before the command.
 */
import { randomBytes } from "node:crypto"
import { existsSync, mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { createProcessRunner, findExecutables } from "../../host/process.ts"
import { cutText } from "../../host/text.ts"
import { removeAll } from "./create.ts"
import { isInside } from "./paths.ts"
import { type Refusal, refusals } from "./repository.ts"

export type Boundary = {
  readonly kind: "boundary"
  /** Adds a line that fails outside. It starts no command, so that the rules judge what they would without it; the model sees it. */
  guard(command: string): string
  readonly environment: Readonly<Record<string, string>>
  remove(): Promise<void>
}

type Place = {
  readonly sandbox: string
  /** Takes the place of the machine's own folder for temporary files, where programs have their sockets. */
  readonly temporary: string
  /** Folders that are read, wherever they are. */
  readonly kept: readonly string[]
}

/** Sockets in /run and /tmp lead to programs outside, such as Docker's; name resolution needs one file there. */
const IN_RUN = ["/run/systemd/resolve", "/run/current-system", "/run/media"]

const bubblewrap = (program: string, { sandbox, temporary, kept }: Place): string[] => [
  program,
  ...["--unshare-user", "--unshare-pid", "--unshare-ipc", "--new-session", "--die-with-parent", "--cap-drop", "ALL"],
  // Root could set up the kernel in /proc, also without a capability.
  ...["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"],
  ...["--tmpfs", "/run", ...IN_RUN.flatMap((path) => ["--ro-bind-try", path, path])],
  ...["--bind", temporary, "/tmp"],
  ...kept.filter((path) => isInside("/tmp", path) && path !== "/tmp").flatMap((path) => ["--ro-bind-try", path, path]),
  // It is made while the child's model thinks; until then nothing can be written there.
  ...["--bind-try", sandbox, sandbox],
  "--",
]

/** Not run yet on a Mac. */
const seatbelt = (program: string, { sandbox, temporary }: Place): string[] => {
  const folders = [temporary, sandbox]
  const writable = [
    ...folders.map((_, index) => `(subpath (param "FOLDER${index}"))`),
    ...["null", "zero", "tty", "dtracehelper"].map((name) => `(literal "/dev/${name}")`),
    '(regex #"^/dev/fd/")',
  ]
  const profile = `(version 1) (allow default) (deny file-write*) (allow file-write* ${writable.join(" ")})`
  return [program, ...folders.flatMap((folder, index) => ["-D", `FOLDER${index}=${folder}`]), "-p", profile]
}

const quote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** The start-up file of bash and of zsh. What it sets for itself is as it was for the programs in the boundary. */
const renderStartUp = (argv: readonly string[], variables: Readonly<Record<string, string | undefined>>): string =>
  [
    ...Object.entries(variables).map(([name, value]) =>
      value === undefined ? `unset ${name}` : `export ${name}=${quote(value)}`,
    ),
    `exec ${argv.map(quote).join(" ")} "\${BASH:-zsh}" -c "\${BASH_EXECUTION_STRING-$ZSH_EXECUTION_STRING}" "$0" "$@"`,
    "exit 126",
    "",
  ].join("\n")

/** The shell that OpenCode starts. */
const shellOf = ({ SHELL }: NodeJS.ProcessEnv): string =>
  SHELL && !["fish", "nu"].includes(basename(SHELL)) ? SHELL : "bash"

const realPlace = (path: string): string =>
  existsSync(dirname(path)) ? join(realpathSync(dirname(path)), basename(path)) : path

const TRIAL_DEADLINE_MS = 10_000

/**
 * Makes a pass's boundary, and tries it with OpenCode's shell.
 *
 * @param sandbox absolute path; it need not be there yet
 * @param kept absolute paths, such as the project's
 * @returns a refusal where there can be none: then nothing may run
 */
export const createBoundary = async (
  { sandbox, kept }: Pick<Place, "sandbox" | "kept">,
  { env = process.env, platform = process.platform }: { env?: NodeJS.ProcessEnv; platform?: string } = {},
): Promise<Boundary | Refusal> => {
  const isMac = platform === "darwin"
  if (!isMac && platform !== "linux") return refusals.noBoundary(`there is none on ${platform}`)
  const [program] = isMac ? ["/usr/bin/sandbox-exec"] : findExecutables("bwrap", env.PATH)
  if (program === undefined) return refusals.noBoundary("there is no bwrap on PATH")
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "baton-boundary-")))
  const temporary = join(folder, "tmp")
  mkdirSync(temporary)
  const place = { sandbox: realPlace(sandbox), temporary, kept: [...kept, homedir()] }
  const argv = isMac ? seatbelt(program, place) : bubblewrap(program, place)
  const mark = `_baton_${randomBytes(4).toString("hex")}`
  const { BASH_ENV, ZDOTDIR } = env
  // With it a command could ask OpenCode's own server for one outside.
  const without = { OPENCODE_SERVER_PASSWORD: undefined }
  const variables = { ...without, BASH_ENV, ZDOTDIR, TMPDIR: isMac ? temporary : "/tmp", [mark]: "1" }
  const startUp = join(folder, ".zshenv")
  writeFileSync(startUp, renderStartUp(argv, variables), { mode: 0o600 })
  const boundary: Boundary = {
    kind: "boundary",
    guard: (command) => `${mark}=\${${mark}:?no boundary}\n${command}`,
    environment: { BASH_ENV: startUp, ZDOTDIR: folder },
    remove: () => removeAll(folder),
  }
  const shell = shellOf(env)
  const trial = await createProcessRunner({ shell: undefined })([shell, "-c", boundary.guard("exit 0")], {
    cwd: "/",
    deadlineMs: TRIAL_DEADLINE_MS,
    env: boundary.environment,
  })
  if (trial.kind === "exited" && trial.exitCode === 0) return boundary
  await boundary.remove()
  const said = trial.kind === "exited" ? trial.stderr.trim() : trial.kind === "timed-out" ? "no answer" : trial.cause
  return refusals.noBoundary(`${basename(shell)} could not be started in it: ${cutText(said, 300)}`)
}
