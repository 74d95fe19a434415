import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { BRIEF, TASK } from "../../support/index.ts"
import { openCodeLog2, openServer2, openTask2 } from "../../support/opencode/opencode-2.ts"
import { HAS_OPENCODE_2 } from "../../support/opencode/opencode-binary.ts"

if (!HAS_OPENCODE_2)
  test("NOT RUN, for want of OpenCode 2 on this system: all of test/e2e/opencode-2", () => {
    console.warn("NOT RUN: OpenCode 2.0.15 is on npm for Linux on x64 alone")
  })

describe.runIf(HAS_OPENCODE_2)("OpenCode 2.0.15", () => {
  test(
    promised(["v2.A2", "v2.C0"], "no plugin fails, and one line of the log says what is not there yet"),
    async () => {
      const task = await openTask2(() => ({ text: "Finished." }))
      await using server = await openServer2(task.project)
      await server.say("hello")
      const own = (await server.plugins()).filter(({ id }) => id.startsWith("baton."))
      const named = own.map(({ id, state }) => `${id.replace(/\.[0-9a-f]{6}$/, "")}: ${state.status}`)
      expect(named.toSorted()).toEqual(
        ["compaction-handoff", "handoff", "live-state", "pass-over", "session-learning", "write-guard"].map(
          (id) => `baton.${id}: active`,
        ),
      )
      const said = task.project.batonLog().filter((line) => line.includes("not there yet"))
      expect(said).toEqual([expect.stringContaining("handoff, live state, passes")])
      expect(task.project.batonLog().filter((line) => /level=(?:WARN|ERROR)/.test(line))).toEqual([])
    },
  )

  test(promised("v2.B1", "each request of a run holds the task once, and its first already"), async () => {
    const task = await openTask2(({ index }) =>
      index === 0
        ? { tool: "shell", input: { command: "which prog && prog --help", description: "d" } }
        : { text: "Done." },
    )
    await task.runWell(task.message)
    const turns = task.model.received("turn")
    expect(turns).toHaveLength(2)
    for (const { conversation } of turns) {
      for (const part of [task.taskID, TASK.title, TASK.definitionOfDone, BRIEF]) expect(conversation).toContain(part)
      expect(conversation.match(/\[Baton\] /g), conversation).toHaveLength(1)
    }
    expect(turns[1]?.conversation).toMatch(/baton\/path\/prog/)
    expect(openCodeLog2(task.project)).not.toMatch(/level=(?:WARN|ERROR).*plugin/)
  })
})
