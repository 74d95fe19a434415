import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  COMPACTING_PROMPT_TOKENS,
  closeTaskProjects,
  eventually,
  type ModelReply,
  openSharedTask,
  type SharedTask,
  TASK,
} from "../../support/index.ts"

closeTaskProjects()

const compacting: ModelReply = {
  tool: "bash",
  input: { command: "true", description: "A step" },
  promptTokens: COMPACTING_PROMPT_TOKENS,
}
const MODEL = { providerID: "scripted", modelID: "model" }

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(promised("compaction.C7", "a manual compaction that no turn follows is recorded once"), async () => {
    const task = await openSharedTask(binary, ({ kind }) => ({
      text: kind === "compaction" ? "By hand." : "Started.",
    }))
    const id = await task.say(task.message)
    await task.client.session.summarize({ path: { id }, body: MODEL })
    const logs = await eventually("the record", async () => {
      const { logs } = await task.ledger.show(task.taskID)
      return logs.length > 0 ? logs : undefined
    })
    expect(logs.map(({ message }) => message)).toEqual(["Compaction 1: By hand."])
    await task.say("go on", id)
    expect((await task.ledger.show(task.taskID)).logs).toHaveLength(1)
    expect(task.model.received("turn").at(-1)?.conversation).toContain(`Role: worker`)
  })

  test(
    promised(
      ["compaction.C3", "compaction.C7"],
      "compactions in a row, with no turn between, each carry the one before on",
    ),
    async () => {
      const task = await openSharedTask(binary, ({ kind, index }) => ({
        text: kind === "compaction" ? `Row ${index + 1} of the summaries.` : "Started.",
      }))
      const id = await task.say(task.message)
      for (let row = 1; row <= 3; row++) await task.client.session.summarize({ path: { id }, body: MODEL })
      const [, second, third] = task.model.received("compaction")
      expect(second?.conversation).toContain("Row 1 of the summaries.")
      expect(third?.conversation).toContain("Row 2 of the summaries.")
      const logs = await eventually("the records", async () => {
        const { logs } = await task.ledger.show(task.taskID)
        return logs.length > 2 ? logs : undefined
      })
      expect(logs.map(({ message }) => message)).toEqual(
        [1, 2, 3].map((row) => `Compaction ${row}: Row ${row} of the summaries.`),
      )
    },
  )

  test(
    promised("compaction.C7", "a subagent's own compaction is recorded for the parent's task, with the child's brief"),
    async () => {
      const task = await openSharedTask(binary, ({ kind, conversation }): ModelReply => {
        if (kind === "compaction") return { text: "The child's summary." }
        if (conversation.includes("What did we do so far?")) return { text: "The child is finished." }
        if (conversation.includes("The session that started you")) return compacting
        if (conversation.includes("The child is finished.")) return { text: "Finished." }
        const input = { description: "Count", prompt: "COUNT-THE-FILES and nothing else", subagent_type: "general" }
        return { tool: "task", input }
      })
      await task.say(task.message)
      expect(task.model.received("compaction")).toHaveLength(1)
      const child = task.model
        .received("turn")
        .find(({ conversation }) => conversation.includes("What did we do so far?"))
      expect(child?.conversation).toContain(`Task: ${task.taskID}`)
      expect(child?.conversation).toContain("COUNT-THE-FILES and nothing else")
      expect((await task.ledger.show(task.taskID)).logs.map(({ message }) => message)).toEqual([
        "Compaction 1: The child's summary.",
      ])
    },
  )

  test(promised("compaction.C8", "a failed summary leaves no record, and its repetition exactly one"), async () => {
    let step = 0
    const task = await openSharedTask(binary, ({ kind, index }): ModelReply => {
      if (kind === "compaction")
        return index === 0 ? { status: 400, message: "no summary today" } : { text: "At last." }
      return step++ === 0 ? compacting : { text: "Finished." }
    })
    const session = (await task.client.session.create({ body: {} })).data?.id ?? ""
    await expect(task.say(task.message, session)).rejects.toThrow("no summary today")
    expect(task.model.received("compaction")).toHaveLength(1)
    expect((await task.ledger.show(task.taskID)).logs).toEqual([])
    expect((await task.ledger.show(task.taskID)).description).toBe(TASK.specification)
    await task.say("go on", session)
    expect((await task.ledger.show(task.taskID)).logs.map(({ message }) => message)).toEqual(["Compaction 1: At last."])
  })

  test(
    promised("compaction.C8", "an empty summary is recorded as empty, with the facts and the handoff before it"),
    async () => {
      let step = 0
      const task = await openSharedTask(binary, ({ kind, index }): ModelReply => {
        if (kind === "compaction") return { text: index === 0 ? "The handoff that counts." : "" }
        return step++ < 2 ? compacting : { text: "Finished." }
      })
      await task.say(task.message)
      const { logs, description } = await eventually("the second record", async () => {
        const shown = await task.ledger.show(task.taskID)
        return shown.description.includes("Handoff after compaction 2") ? shown : undefined
      })
      expect(logs.at(-1)?.message).toMatch(/^Compaction 2: the summary was empty/)
      expect(description.startsWith(TASK.specification)).toBe(true)
      for (const part of [
        "The summary of this compaction was empty.",
        "Facts gathered by program",
        "The handoff that counts.",
      ]) {
        expect(description).toContain(part)
      }
      expect(task.model.received("turn").at(-1)?.conversation).toContain("The handoff that counts.")
    },
  )

  test(promised("compaction.C9", "each branch of a run is in OpenCode's log with its session"), async () => {
    let step = 0
    const task: SharedTask = await openSharedTask(binary, async ({ kind }): Promise<ModelReply> => {
      if (kind === "compaction") return { text: "A summary." }
      if (step++ < 1) return compacting
      // Log lines that OpenCode has not written when a run ends are lost.
      const isLogged = () => task.project.batonLog().some((line) => line.includes("compaction recorded"))
      await eventually("the record in the log", () => isLogged() || undefined)
      return { text: "Finished." }
    })
    await task.say(task.message)
    const lines = task.project.batonLog()
    for (const branch of ["session has a task", "compaction prompt replaced", "compaction recorded"]) {
      const line = lines.find((text) => text.includes(branch))
      expect(line ?? "", `${branch} in:\n${lines.join("\n")}`).toMatch(/ses_[A-Za-z0-9]{20,}/)
    }
  })
})
