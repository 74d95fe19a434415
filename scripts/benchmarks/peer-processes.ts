import type { OpenCodeBinary } from "../../test/support/opencode-binary.ts"
import { type BenchProject, withServer } from "./bench-project.ts"
import type { BenchmarkContext } from "./benchmark.ts"
import { attempt, type Failures, measureRounds } from "./peer-rounds.ts"
import { projectMemory } from "./process-memory.ts"
import { type Figure, toFigure } from "./results.ts"
import { pairRatios } from "./statistics.ts"
import { withSubjects } from "./subject-project.ts"
import { SUBJECT_LABELS, SUBJECT_NAMES, type SubjectName } from "./subjects.ts"

const MESSAGE = "# Worker\n\nTask: ts-b54507\n\nSay hello.\n"
const RUN_DEADLINE_MS = 90_000
/** They mostly wait. */
const SERVERS_AT_ONCE = 3
/** What plugins start a few seconds after a session's first event is counted. */
const SETTLE_MS = 5_000

/** OpenCode goes on without a plugin that it cannot load, and says why in its log alone. */
const checkLoaded = ({ project }: BenchProject): void => {
  const line = project
    .log()
    .split("\n")
    .find((each) => each.includes("failed to load plugin"))
  if (line)
    throw new Error(`OpenCode cannot load it: ${/error=(.+?)(?: failed to load plugin|$)/.exec(line)?.[1] ?? line}`)
}

const memoryOf = (opened: BenchProject): Promise<number> =>
  withServer(opened, {}, async ({ client, pid }) => {
    const id = (await client.session.create({ body: {} })).data?.id ?? ""
    const parts = [{ type: "text" as const, text: MESSAGE }]
    const { error } = await client.session.prompt({ path: { id }, body: { parts } })
    if (error) throw new Error(`OpenCode refused: ${JSON.stringify(error).slice(0, 200)}`)
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
    return projectMemory(pid, opened.project.home)
  })

/** Start and memory of each subject in rounds; one that OpenCode cannot load, or whose run fails, is a failure. */
export const measureProcesses = (binary: OpenCodeBinary, { quick, say }: BenchmarkContext, failures: Failures) =>
  withSubjects(
    binary,
    SUBJECT_NAMES,
    () => ({ text: "Hello." }),
    async (opened) => {
      const project = (name: SubjectName): BenchProject => {
        const found = opened.get(name)
        if (found) return found
        throw new Error(`${name} was not opened`)
      }
      const run = async (name: SubjectName): Promise<number> =>
        (await project(name).run(MESSAGE, { deadlineMs: RUN_DEADLINE_MS })).durationMs
      for (const name of SUBJECT_NAMES)
        await attempt(name, failures, async () => {
          await run(name)
          checkLoaded(project(name))
        })
      const names = SUBJECT_NAMES.filter((name) => !failures.has(name))
      const [starts, servers] = quick ? [1, 1] : [8, 6]
      say(`peers on ${binary.version}: ${starts} rounds of ${names.length} runs`)
      const start = await measureRounds({ names, rounds: starts, atOnce: 1 }, failures, run)
      say(`peers on ${binary.version}: memory, ${servers} rounds of ${names.length} servers`)
      const memory = await measureRounds({ names, rounds: servers, atOnce: SERVERS_AT_ONCE }, failures, (name) =>
        memoryOf(project(name)),
      )
      return { start, memory }
    },
  )

/** Plain OpenCode's own values, and what each subject's are to those of the same round. */
export const processFigures = (
  version: string,
  { start, memory }: Awaited<ReturnType<typeof measureProcesses>>,
): Figure[] => {
  const plainStart = start.get("plain") ?? []
  const plainMemory = memory.get("plain") ?? []
  const about = (quantity: string, name: SubjectName) => ({
    id: `peers.${quantity}.${name}`,
    what: `${quantity}, ${SUBJECT_LABELS[name]}`,
    version,
  })
  return [
    toFigure({ ...about("start", "plain"), unit: "ms" }, plainStart),
    toFigure({ ...about("memory", "plain"), unit: "MB" }, plainMemory),
    ...[...start].flatMap(([name, values]) =>
      name === "plain" ? [] : [toFigure({ ...about("start", name), unit: "×" }, pairRatios(plainStart, values))],
    ),
    ...[...memory].flatMap(([name, values]) => {
      const more = values.map((value, round) => value - (plainMemory[round] ?? 0))
      return name === "plain" ? [] : [toFigure({ ...about("memory", name), unit: "MB" }, more)]
    }),
  ]
}
