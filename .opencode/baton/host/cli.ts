import { describeError } from "./log.ts"

const USAGE_EXIT_CODE = 2

/**
 * Ends the process once its output has left it. A terminal takes all at once; on Bun an exit cuts off what a pipe's reader has
 * not taken yet, even from a write's own callback, so that the process ends by itself there. A reader that went away (`| head`)
 * is no fault of ours.
 */
const finish = (stream: NodeJS.WriteStream, text: string, exitCode: number): void => {
  stream.on("error", () => process.exit(exitCode))
  if (stream.isTTY) stream.write(text, () => process.exit(exitCode))
  else if (text !== "") stream.write(text)
  process.exitCode = exitCode
}

type Command<Request> = {
  /** What a person types behind `baton`. */
  readonly name: string
  /** @throws an Error whose message says what was expected and what was received */
  readonly parse: (args: readonly string[], here: string) => Request
  /** @returns the exit code; 0 when nothing is returned */
  readonly run: (request: Request) => Promise<number | undefined>
}

/**
 * A command of `bin/baton` as a process of its own: argument 1 is the folder the user is in, the user's own arguments
 * follow. Ends the process: with 2 and one line for a wrong command line, else with what the command gives.
 */
export const runCommand = async <Request>({ name, parse, run }: Command<Request>): Promise<void> => {
  const [, , here = process.cwd(), ...args] = process.argv
  let request: Request
  try {
    request = parse(args, here)
  } catch (error) {
    const reason = error instanceof Error ? error.message : describeError(error)
    return finish(process.stderr, `${name}: ${reason}\nTry: baton ${name} --help\n`, USAGE_EXIT_CODE)
  }
  finish(process.stdout, "", (await run(request)) ?? 0)
}
