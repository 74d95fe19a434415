import { spawn } from "node:child_process"
import { afterEach, describe, expect, test } from "vitest"
import { createTourPlace } from "../../../scripts/demonstration/tour/place.ts"
import { promised } from "../../requirements.ts"
import { bash, deadline, newestWords, OLDEST_OR_ALL, type Script, startScriptedModel } from "../../support/index.ts"
import { handoffScript } from "../../support/model/handoff-script.ts"
import { answering, stepOf, taskOf } from "../../support/opencode/work-project.ts"
import { PAGES, type Step } from "../../support/page-commands.ts"

/** A dozen turns of OpenCode, each in a process of its own. */
const PAGE_DEADLINE_MS = deadline(300_000)
const END = /@@ended (\d+)\n$/

/** A slow machine may need this long until a command is carried out. */
const RETYPE_MS = deadline(60_000)
/** Told on a busy machine to a person, who then types the command again. */
const LATE = "Baton did not carry this out in time"

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** A person's shell, in which one command is typed after the other. */
const openShell = ({ directory, environment }: ReturnType<typeof createTourPlace>["project"]) => {
  const shell = spawn("bash", ["--noprofile", "--norc", "-s"], { cwd: directory, env: environment })
  ends.push(() => shell.kill("SIGKILL"))
  let printed = ""
  let look = (): void => {}
  for (const stream of [shell.stdout, shell.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      printed += text
      look()
    })
  shell.stdin.write("shopt -s expand_aliases\n")
  /** @returns exit code and output */
  return (command: string): Promise<{ exitCode: number; output: string }> =>
    new Promise((resolve, reject) => {
      shell.once("exit", (code) => reject(new Error(`the shell ended with ${code} at ${command}: ${printed}`)))
      printed = ""
      look = () => {
        const [ended, exitCode] = END.exec(printed) ?? []
        if (ended === undefined) return
        shell.removeAllListeners("exit")
        resolve({ exitCode: Number(exitCode), output: printed.slice(0, -ended.length) })
      }
      shell.stdin.write(`{ ${command}\n} </dev/null 2>&1; echo "@@ended $?"\n`)
    })
}

/** Does a worker's task at once, hands over when it is asked to, and says a word otherwise. */
const script: Script = answering((request) => {
  const task = taskOf(request)
  const isWorker = request.conversation.includes("# Worker") && task !== ""
  if (isWorker && request.kind === "turn") return stepOf(request) === 0 ? bash(`prog done ${task}`) : { text: "Done." }
  return handoffScript({ prompt: "Go on with the parser.", files: [] })(request)
})

const AN_ID = /\bts-[0-9a-f]{6}\b/g

describe.each(OLDEST_OR_ALL)("with OpenCode $version", (binary) => {
  test.each(Object.keys(PAGES).filter((page) => PAGES[page]?.some(({ by }) => by === undefined)))(
    promised("people.D1", "the commands of %s do what they are said to do"),
    async (page) => {
      const model = await startScriptedModel(script)
      ends.push(() => model.close())
      const { project } = createTourPlace(binary, model.url)
      ends.push(() => project.remove())
      const type = openShell(project)
      let id = "ts-b54507"
      const wrong: unknown[] = []
      const here = (text: string): string => text.replaceAll(/\bts-b54507\b|\bID\b/g, id)
      const typeUntilDone = async (
        line: string,
        over = performance.now() + RETYPE_MS,
      ): Promise<{ exitCode: number; seen: string }> => {
        const before = model.requests.length
        const { exitCode, output } = await type(line)
        const conversation = model.requests.at(-1)?.conversation ?? ""
        const isAnswered = model.requests.length > before
        const isLate = isAnswered && newestWords({ conversation }).includes(LATE)
        return isLate && performance.now() < over
          ? typeUntilDone(line, over)
          : { exitCode, seen: `${output}\n${conversation}` }
      }
      const run = async ({ command = "", instead = command, shows, by }: Step): Promise<void> => {
        if (by) return
        const { exitCode, seen } = await typeUntilDone(here(instead))
        if (/\bprog add\b|task "new /.test(instead)) id = seen.match(AN_ID)?.at(-1) ?? id
        const isShown = !shows || new RegExp(here(shows.source), shows.flags).test(seen)
        if (exitCode !== 0 || !isShown) wrong.push({ command: here(instead), exitCode, expected: String(shows), seen })
      }
      for (const step of PAGES[page] ?? []) await run(step)
      expect(wrong).toEqual([])
    },
    PAGE_DEADLINE_MS,
  )
})
