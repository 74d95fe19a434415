import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  bash,
  newestOrder,
  openSharedTask,
  openTaskProject,
  type Script,
  type TaskProject,
} from "../../support/index.ts"
import { openTask2 } from "../../support/opencode/opencode-2.ts"
import { HAS_OPENCODE_2, type OpenCodeBinary } from "../../support/opencode/opencode-binary.ts"
import { runProgram } from "../../support/opencode/opencode-run.ts"
import { compact } from "../sessions.ts"

type Line = { where: string; id: string; by?: string; title: string; excerpt: string; read: string }

/** `baton search WORDS --json` in the project, on the OpenCode that wrote the sessions. */
const searchIn =
  ({ project }: Pick<TaskProject, "project">, { path }: OpenCodeBinary) =>
  async (...words: string[]): Promise<Line[]> => {
    const command = join(project.directory, ".opencode/baton/bin/baton")
    const { exitCode, stdout, stderr } = await runProgram([command, "search", "--json", ...words], {
      project,
      environment: { BATON_OPENCODE: path },
    })
    const lines = stdout.split("\n").filter((line) => line !== "")
    expect([exitCode, stderr.trim()]).toEqual(lines.length > 0 ? [0, ""] : [1, `Nothing found: ${words.at(-1)}`])
    return lines.map((line) => JSON.parse(line))
  }

const summary = (lines: readonly Line[]) => lines.map(({ where, id, by = "" }) => `${where} ${id} ${by}`.trim())

/** Answers with an okapi, and runs a command when it is told to. */
const script: Script = (request) => {
  if (request.kind === "compaction") return { text: "The summary: a QUAGGA was seen." }
  const words = newestOrder(request)
  if (words.includes("RUN") && !words.includes("[tool]"))
    // The output alone has the words: on 1.18.33 the command is the call's title.
    return bash("printf 'a num%s a wom%s' bat bat")
  return { text: "An okapi, of course." }
}

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised(
      "people.E1",
      "while OpenCode runs, words of user, agent, summary and tools are found, and those of the task",
    ),
    async () => {
      const task = await openSharedTask(binary, script)
      const other = await openSharedTask(binary, script)
      const search = searchIn(task, binary)
      const id = await task.say(`${task.message}\nKeep the PLATYPUS of the Straße. RUN`)
      await other.say("Another platypus in another project, of the Straße.")
      await compact(task, id)
      await task.ledger.prog("log", task.taskID, "The platypus is kept")
      const found = await search("STRASSE platypus")
      expect(summary(found.filter(({ where }) => where === "session"))).toEqual([`session ${id} user`])
      expect(summary(await search("okapi"))).toContain(`session ${id} assistant`)
      expect(summary(await search("quagga"))).toContain(`session ${id} assistant`)
      // Filed under another name than the folder's, and a task of one of its sessions.
      expect(summary(await search("platypus kept"))).toContain(`task ${task.taskID}`)
      expect(await search("wombat numbat")).toEqual([])
      const [tool] = await search("--tools", "wombat numbat")
      expect(tool?.excerpt).toContain("a numbat a wombat")
    },
  )

  test(
    promised(
      "people.E1",
      "where OpenCode does not run, words are found, and the command given reads more in the next session",
    ),
    async () => {
      const task: TaskProject = await openTaskProject(binary, (request) => {
        const asked = /read_session (\{.*\})/.exec(newestOrder(request))?.[1]
        if (asked === undefined || newestOrder(request).includes("[tool]")) return { text: "Noted." }
        return { tool: "read_session", input: JSON.parse(asked) }
      })
      await task.runWell("The first PLATYPUS.\nIt has an egg.")
      const [found] = await searchIn(task, binary)("egg platypus")
      expect(found).toMatchObject({ where: "session", by: "user" })
      // Without quotes around it: `run` quotes an argument, and stdin it does not.
      await task.runWell(`Please do this: ${found?.read}`)
      const turn = task.model.received("turn").at(-1)?.conversation
      expect(turn).toContain("> The first PLATYPUS.\n  It has an egg.")
      expect(turn).toContain("is not in this session's chain.")
    },
  )
})

describe.runIf(HAS_OPENCODE_2)("OpenCode 2.0.15", () => {
  test(promised("people.E1", "words of user, agent and tools are found in OpenCode 2's database"), async () => {
    const task = await openTask2(({ index }) =>
      index === 0
        ? { tool: "shell", input: { command: "echo a numbat", description: "A step" } }
        : { text: "An okapi, of course." },
    )
    await task.runWell(`${task.message}\nKeep the PLATYPUS of the Straße.`)
    const search = searchIn(task, task.binary)
    const [said] = await search("STRASSE platypus")
    expect(said).toMatchObject({ where: "session", by: "user", excerpt: expect.stringContaining("Keep the PLATYPUS") })
    expect(said?.read).toBe(`opencode --session ${said?.id}`)
    expect(summary(await search("okapi"))).toContain(`session ${said?.id} assistant`)
    expect((await search("--tools", "numbat"))[0]?.id).toBe(said?.id)
    expect(await search("numbat")).toEqual([])
  })
})
