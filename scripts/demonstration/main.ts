import { readDemoOptions } from "./options.ts"
import { createPaint, wantsColour } from "./paint.ts"
import { runDemo } from "./run-demo.ts"

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/** The entry that scripts/demo starts: signals, output and the exit code. */
const main = async (): Promise<number> => {
  const stop = new AbortController()
  let interrupted: number | undefined
  for (const [name, code] of Object.entries(EXIT_CODES)) {
    process.once(name, () => {
      interrupted = code
      stop.abort(new Error("interrupted"))
    })
  }
  const paint = createPaint(wantsColour(process.env, process.stdout.isTTY === true))
  const write = (text: string): void => {
    process.stdout.write(text)
  }
  try {
    const passed = await runDemo(readDemoOptions(process.env), { write, paint, signal: stop.signal })
    return passed ? 0 : 1
  } catch (error) {
    if (interrupted !== undefined) {
      process.stderr.write("\ndemo: interrupted; what it started is ended, what it wrote is removed\n")
      return interrupted
    }
    process.stderr.write(`\ndemo: ${error instanceof Error ? error.message : String(error)}\n`)
    return 1
  }
}

process.exitCode = await main()
