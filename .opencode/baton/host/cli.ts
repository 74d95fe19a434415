import { existsSync } from "node:fs"
import { join, resolve } from "node:path"
import { stripVTControlCharacters } from "node:util"
import { describeError, errorCode } from "./log.ts"
import { isFolder, nearestProject } from "./project.ts"
import { findForeign, howToUse } from "./state-mark.ts"
import { escapeCharacter } from "./text.ts"

const USAGE_EXIT_CODE = 2
const FAILED_EXIT_CODE = 1

/** Takes out what a terminal would act on, or show in another order: agents and repositories write most of what is shown. */
export const printable = (text: string): string =>
  stripVTControlCharacters(text).replaceAll(/(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu, "")

/** The same on one line. */
export const printableLine = (text: string): string =>
  stripVTControlCharacters(text)
    .replaceAll(/[\p{Cc}\p{Bidi_Control}\s]+/gu, " ")
    .trim()

/** Prints text for a person. A command writes to a terminal through these three alone. */
export const print = (text: string): void => void process.stdout.write(`${printable(text)}\n`)

export const complain = (text: string): void => void process.stderr.write(`${printable(text)}\n`)

/** JSON itself escapes less than a terminal acts on. @param indent 0 for one line */
export const printJSON = (value: unknown, indent = 2): void => {
  const text = JSON.stringify(value, null, indent).replaceAll(/(?!\n)[\p{Cc}\p{Bidi_Control}]/gu, escapeCharacter)
  process.stdout.write(`${text}\n`)
}

/**
 * Ends the process after its output is written. On Bun an exit cuts off output that a pipe's reader has not taken yet, even
 * in the write's own callback, so with a pipe the process ends by itself. A reader may close early (`| head`).
 */
const finish = (stream: NodeJS.WriteStream, said: string, exitCode: number): void => {
  const text = printable(said)
  stream.on("error", () => process.exit(exitCode))
  if (stream.isTTY) stream.write(text, () => process.exit(exitCode))
  else if (text !== "") stream.write(text)
  process.exitCode = exitCode
}

/**
 * Finds the project of a command: DIR, or the nearest one from the user's folder upwards.
 *
 * @throws Error for the user where there is no project
 */
export const chooseProject = (directory: string | undefined, here: string): string => {
  const root = directory === undefined ? nearestProject(here) : resolve(here, directory)
  if (!isFolder(root)) throw new Error(`expected a project folder, received '${directory ?? root}', which is not there`)
  if (existsSync(join(root, ".opencode"))) return root
  throw new Error(`there is no Baton project in '${root}': expected a folder with .opencode`)
}

/** A moment for people, in the machine's time zone: `2026-01-31 12:00`. @param iso ISO 8601 */
export const localMinute = (iso: string): string => {
  const at = new Date(iso)
  if (Number.isNaN(at.getTime())) return iso
  const two = (value: number): string => String(value).padStart(2, "0")
  const day = [String(at.getFullYear()), two(at.getMonth() + 1), two(at.getDate())].join("-")
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}`
}

/** The words for the user; Node's own speak of its parser. */
const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return describeError(error)
  const [, option] = /'(-[^' ]*)[^']*'/.exec(error.message) ?? []
  switch (option === undefined ? "" : errorCode(error)) {
    case "ERR_PARSE_ARGS_UNKNOWN_OPTION":
      return `unknown option ${option}`
    case "ERR_PARSE_ARGS_INVALID_OPTION_VALUE":
      return error.message.includes("does not take") ? `${option} takes no value` : `${option} needs a value`
    default:
      return error.message
  }
}

type Command<Request> = {
  /** The subcommand, typed after `baton`. */
  readonly name: string
  /** @throws an Error whose message says what was expected and what was received */
  readonly parse: (args: readonly string[], here: string) => Request
  /** The projects whose state the command reads: where one is foreign it ends with 1. */
  readonly projectsOf?: (request: Request) => readonly string[]
  /** @returns the exit code; 0 when nothing is returned */
  readonly run: (request: Request) => Promise<number | undefined>
}

/**
 * Runs a command of `bin/baton` in its own process. Argument 1 is the user's folder; the user's arguments follow.
 * Ends the process with 2 and one line for a wrong command line, else with the command's exit code.
 */
export const runCommand = async <Request>({ name, parse, projectsOf, run }: Command<Request>): Promise<void> => {
  const [, , here = process.cwd(), ...args] = process.argv
  let request: Request
  try {
    request = parse(args, here)
  } catch (error) {
    return finish(process.stderr, `${name}: ${reasonOf(error)}\nTry: baton ${name} --help\n`, USAGE_EXIT_CODE)
  }
  for (const project of projectsOf?.(request) ?? []) {
    const reason = findForeign(project)
    if (reason === undefined) continue
    const refusal = `${name}: the state of ${project} is not read: ${reason}. ${howToUse(reason)}\n`
    return finish(process.stderr, refusal, FAILED_EXIT_CODE)
  }
  finish(process.stdout, "", (await run(request)) ?? 0)
}
