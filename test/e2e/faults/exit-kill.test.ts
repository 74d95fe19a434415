import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { SEED } from "../../support/effort.ts"
import { findProcessesOf } from "../../support/faults/fault-leftovers.ts"
import {
  COMPACTING_PROMPT_TOKENS,
  closeTaskProjects,
  deadline,
  endsOf,
  eventually,
  IS_NIGHT,
  type ModelReply,
  openTaskProject,
  type Script,
  type TaskProject,
} from "../../support/index.ts"
import { testRandom } from "../../support/test-random.ts"

closeTaskProjects()

const KILLS = IS_NIGHT ? 8 : 1
/** Number of requests from which on a turn has followed a compaction of the run. */
const FOLLOWING_REQUESTS = 3
/** Maximum number of requests that are answered before the kill. */
const MOST_REQUESTS = 5
/** Approximate time between two requests. */
const SPREAD_MS = 700
const RECORD_DEADLINE_MS = 60_000

const stateFolder = ({ project }: TaskProject): string => join(project.directory, ".opencode", "state")

const readStateFiles = (task: TaskProject): { path: string; text: string }[] =>
  readdirSync(stateFolder(task), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".json"))
    .map((path) => ({ path, text: readFileSync(join(stateFolder(task), path), "utf8") }))

const unreadable = (task: TaskProject): string[] =>
  readStateFiles(task).flatMap(({ path, text }) => {
    try {
      JSON.parse(text)
      return []
    } catch (error) {
      return [`${path}: ${String(error)}: ${text}`]
    }
  })

const waiting = (task: TaskProject): number =>
  readStateFiles(task).filter(({ path }) => /^outbox\/[^/]+$/.test(path)).length

const summaryNumber = (text: string): number => Number(/Summary (\d+)\./.exec(text)?.[1])

describe.each(endsOf(SEED))("OpenCode $version", (binary) => {
  test(
    promised("faults.F2", "kills lose no compaction that a turn has followed, and double none"),
    async () => {
      const random = testRandom()
      const fewest = (kill: number) => (kill === 0 ? FOLLOWING_REQUESTS : 1)
      const moments = Array.from({ length: KILLS }, (_, kill) => ({
        requests: fewest(kill) + Math.floor(random() * (MOST_REQUESTS + 1 - fewest(kill))),
        delayMs: Math.round(random() * SPREAD_MS),
      }))
      /** Compactions followed by a turn: their record was on disk before the request for that turn. */
      const followed = new Set<number>()
      let requestsLeft = 0
      let endRun = (): void => {}
      let isLast = false

      const script: Script = async ({ kind, index, conversation }): Promise<ModelReply> => {
        requestsLeft -= 1
        if (requestsLeft === 0) endRun()
        if (kind === "compaction") return { text: `Summary ${index + 1}.` }
        const summary = /\[assistant\] (Summary \d+\.)/.exec(conversation)?.[1]
        if (summary) followed.add(summaryNumber(summary))
        if (isLast) {
          await eventually("an empty outbox", () => (waiting(task) === 0 ? true : undefined), RECORD_DEADLINE_MS)
          return { text: "Finished." }
        }
        const input = { command: "true", description: "A step" }
        return { tool: "bash", input, promptTokens: COMPACTING_PROMPT_TOKENS }
      }
      const task: TaskProject = await openTaskProject(binary, script)
      const sessionArgs = (): string[] => {
        const folder = join(stateFolder(task), "tasks")
        const [file] = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")) : []
        return file ? ["--session", file.replace(".json", "")] : []
      }

      for (const { requests, delayMs } of moments) {
        requestsLeft = requests
        const args = sessionArgs()
        const result = await task.run(args.length > 0 ? "go on" : task.message, {
          args,
          onStart: (pid) => {
            endRun = () => setTimeout(() => process.kill(pid, "SIGKILL"), delayMs)
          },
        })
        expect(result.signal, result.stderr).toBe("SIGKILL")
        expect(unreadable(task)).toEqual([])
      }
      isLast = true
      const result = await task.run("go on", { args: sessionArgs() })
      expect(result.exitCode, result.stderr).toBe(0)

      const context = `killed after ${JSON.stringify(moments)}; followed: ${[...followed].join(", ")}`
      const { logs, description } = await task.ledger.show(task.taskID)
      const records = logs.map(({ message }) => message)
      const summaries = records.map(summaryNumber)
      expect(summaries, context).toEqual([...new Set(summaries)].toSorted((a, b) => a - b))
      expect(
        records.map((record) => record.replace(/:.*/, "")),
        context,
      ).toEqual(records.map((_, index) => `Compaction ${index + 1}`))
      const longRuns = moments.filter(({ requests }) => requests >= FOLLOWING_REQUESTS)
      expect(followed.size, context).toBeGreaterThanOrEqual(longRuns.length)
      expect(
        [...followed].filter((number) => !summaries.includes(number)),
        context,
      ).toEqual([])
      expect(description, context).toContain(`Handoff after compaction ${records.length} `)
      expect(await findProcessesOf(task.project)).toEqual([])
    },
    deadline(300_000),
  )
})
