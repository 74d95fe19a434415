import { appendFileSync, chmodSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { isAlive } from "../../../.opencode/baton/host/process-identity.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { eventually, LEDGER_WAIT_MS, occurrences, TASK } from "../../support/index.ts"
import { locationQuery } from "../../support/opencode/client-2.ts"
import { openServer2, openTask2, type Task2 } from "../../support/opencode/opencode-2.ts"
import { HAS_OPENCODE_2 } from "../../support/opencode/opencode-binary.ts"

/** How often a plugin of the bundle was set up. */
const starts = ({ project }: Task2): number =>
  project.batonLog().filter((line) => line.includes("a plugin is set up")).length

const problems = ({ project }: Task2): string[] => project.batonLog().filter((line) => /level=ERROR/.test(line))

describe.runIf(HAS_OPENCODE_2)("OpenCode 2.0.15", () => {
  test(
    promised("v2.A3", "a changed file starts the plugins again that it concerns, and the others go on"),
    async () => {
      const task = await openTask2(() => ({ text: "Understood." }))
      await using server = await openServer2(task.project)
      const id = await server.say(task.message)
      const changes = [
        [".opencode/baton/core/core.ts", 6],
        [".opencode/plugins/write-guard.ts", 1],
        [".opencode/plugins/compaction-handoff.ts", 6],
      ] as const
      for (const [path, count] of changes) {
        const before = starts(task)
        // In one write: OpenCode would see a file that is written anew empty, and change twice.
        appendFileSync(join(task.project.directory, path), "\n// changed\n")
        await eventually(`a new start after a change of ${path}`, () =>
          starts(task) === before + count ? true : undefined,
        )
      }
      await server.say("go on", id)
      const last = task.model.received("turn").at(-1)?.conversation ?? ""
      expect(occurrences(last, "[Baton] ")).toBe(1)
      expect(last).toContain(TASK.title)
      await server.command(id, "task", "")
      await server.say("and on", id)
      const answered = task.model.received("turn").at(-1)?.conversation ?? ""
      expect(occurrences(answered, "The user typed /task, and Baton answered:")).toBe(1)
      expect(problems(task)).toEqual([])
    },
  )

  test(promised("v2.A3", "the end of another folder in the same service ends nothing here"), async () => {
    const task = await openTask2(() => ({ text: "Understood." }))
    await using server = await openServer2(task.project)
    const id = await server.say(task.message)
    const other = temporaryFolder()
    await server.api("POST", "/session", { location: { directory: other } })
    await server.api("DELETE", `/debug/location?${locationQuery(other)}`)
    await server.say("go on", id)
    expect(task.model.received("turn").at(-1)?.conversation).toContain(TASK.title)
    await server.api("POST", `/session/${id}/compact`, {})
    const recorded = async () => (await task.ledger.messages(task.taskID))[0]
    expect(await eventually("the record", recorded, ...LEDGER_WAIT_MS)).toContain("Compaction 1")
  })

  test(promised("v2.A3", "a server that ends leaves what a session without a compaction had done"), async () => {
    const task = await openTask2(({ index }) =>
      index === 0 ? { tool: "write", input: { path: "parser.txt", content: "x" } } : { text: "The parser is begun." },
    )
    const server = await openServer2(task.project)
    await server.say(task.message)
    await server[Symbol.asyncDispose]()
    expect(isAlive(server.pid)).toBe(false)
    await task.runWell(`Task: ${task.taskID}`)
    const next = task.model.received("turn").at(-1)?.conversation ?? ""
    expect(next).toContain("The parser is begun.")
    expect(next).toContain("parser.txt")
  })

  test(promised("v2.A3", "a ledger that never answers delays a turn by seconds and fails none"), async () => {
    const task = await openTask2(() => ({ text: "Understood." }))
    task.project.write("bin/prog", "#!/bin/sh\nexec sleep 60\n")
    chmodSync(join(task.project.directory, "bin/prog"), 0o755)
    const { PATH = "" } = task.project.environment
    const environment = { BATON_LEDGER: "", PATH: `${task.project.directory}/bin:${PATH}` }
    const { exitCode } = await task.run(task.message, { environment })
    expect(exitCode).toBe(0)
    expect(task.model.received("turn")).toHaveLength(1)
  })
})
