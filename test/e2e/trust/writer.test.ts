import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  eventually,
  openSharedTask,
  openTaskProject,
  type TaskProject,
  testsOnce,
} from "../../support/index.ts"
import { liveFiles } from "../../support/opencode/live-stream.ts"
import { runProgram } from "../../support/opencode/opencode-run.ts"
import { liveState, runWell } from "../sessions.ts"

const NOT_RUN = "the project's state writer is not run until you allow it"

const done = () => ({ text: "Done." })

/** Adds settings that name a writer to the repository. @returns the file that shows that it ran, and `baton` */
const bringWriter = ({ project, binary }: Pick<TaskProject, "project" | "binary">) => {
  const ran = `${project.directory}-writer-ran`
  project.write("writer.sh", `echo ran >> '${ran}'; cat > /dev/null\n`)
  project.write(".opencode/baton.json", JSON.stringify({ liveState: { writer: ["sh", "writer.sh"] } }))
  const baton = (...args: string[]) => {
    const launcher = join(project.directory, ".opencode/baton/bin/baton")
    return runProgram([launcher, ...args], { project, environment: { BATON_OPENCODE: binary.path } })
  }
  return { ran, baton }
}

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  once(
    promised("trust.A3", "a writer that came with the repository runs when it was allowed, and not before"),
    async () => {
      const task = await openSharedTask(binary, done)
      const { ran, baton } = bringWriter(task)
      const { project } = task
      /** Works in a new instance until its live state is shown. */
      const work = async () => {
        await task.restart()
        const id = await task.say(task.message)
        const isShown = () => liveState(project.directory)?.root_opencode_session_id === id || undefined
        await eventually("the live state", isShown)
      }
      await work()
      expect(existsSync(ran)).toBe(false)
      expect(liveFiles(project.directory)).toHaveLength(1)
      await eventually("the warning", () => project.log().includes(NOT_RUN) || undefined)
      expect(project.log().split(NOT_RUN), "once in the log of all projects").toHaveLength(2)
      expect((await baton("doctor")).stdout).toMatch(
        /warning +live-state +the writer \["sh","writer.sh"\] .* is not run until/,
      )

      expect(await baton("trust", "writer")).toMatchObject({
        exitCode: 0,
        stdout: expect.stringContaining("Allowed in"),
      })
      await task.restart()
      await task.say(task.message)
      const hasRun = () => (existsSync(ran) && readFileSync(ran, "utf8") === "ran\n") || undefined
      await eventually("the writer's start", hasRun)

      writeFileSync(join(project.directory, "writer.sh"), `echo pulled >> '${ran}'\n`)
      await work()
      expect(hasRun(), "and not what it has become").toBe(true)
    },
  )

  once(
    promised(
      ["trust.A3", "trust.A1"],
      "with a global Baton, OpenCode's switch keeps out the project's settings and prompts",
    ),
    async () => {
      const task = await openTaskProject(binary, done, { bundle: "project-and-global" })
      const { ran, baton } = bringWriter(task)
      expect((await baton("trust", "writer")).exitCode).toBe(0)
      task.project.write(
        "prompts/worker.md",
        "<!-- baton: -->\n# Worker\n<!-- baton:protocol -->\nOWNED\n<!-- /baton:protocol -->\n",
      )
      const entry = { kind: "log", taskID: task.taskID, message: "Approved by the owner." }
      const record = { version: 1, createdAt: new Date(Date.now() - 3_600_000).toISOString(), entry }
      task.project.write(".opencode/state/outbox/1700000000000-000000-aaaaaaaa.json", JSON.stringify(record))
      const pass = ".opencode/state/pass-over/pass_20260101000000000_aaaa"
      const written = { path: "made.txt", before: null, after: null }
      const journal = { version: 1, files: [], entries: [written], suffix: "0123456789abcdef" }
      task.project.write(`${pass}/files/apply.json`, JSON.stringify(journal))
      task.project.write(`${pass}/files/sandbox.json`, JSON.stringify({ version: 1, target: "" }))
      task.project.write("made.txt", "mine\n")
      task.project.write("made.txt.baton-pass-0123456789abcdef", "mine\n")
      const environment = { OPENCODE_DISABLE_PROJECT_CONFIG: "1" }
      // OpenCode reads the model from the project's own configuration otherwise.
      const config = readFileSync(join(task.project.directory, "opencode.json"), "utf8")
      writeFileSync(join(task.project.home, ".config/opencode/opencode.json"), config)
      await runWell(task, task.message, { environment })
      expect(existsSync(ran)).toBe(false)
      const [first] = task.model.received("turn")
      expect(first?.conversation).toContain(task.taskID)
      expect(first?.conversation).not.toContain("OWNED")
      // What was stored is kept out, too.
      expect(await task.ledger.messages(task.taskID)).toEqual([])
      for (const name of ["made.txt", "made.txt.baton-pass-0123456789abcdef"])
        expect(task.project.read(name)).toBe("mine\n")
      const folder = readdirSync(join(task.project.directory, ".opencode"))
      expect(folder.filter((name) => name.startsWith("state.foreign-"))).toHaveLength(1)
    },
  )
})
