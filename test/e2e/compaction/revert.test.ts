import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { BOTH_ENDS, closeTaskProjects, MODEL, type OpenCodeBinary, openSharedTask, TASK } from "../../support/index.ts"

closeTaskProjects()

/** A session with two messages and one compaction, its record in the ledger. */
const openCompacted = async (binary: OpenCodeBinary) => {
  const task = await openSharedTask(binary, ({ kind, index }) => ({
    text: kind === "compaction" ? `Summary ${index + 1}.` : "Noted.",
  }))
  const id = await task.say(task.message)
  await task.say("REVERTED-WORDS", id)
  const path = { id }
  const compact = () => task.client.session.summarize({ path, body: MODEL })
  await compact()
  await task.records(1)
  return {
    ...task,
    compact,
    ask: () => task.say("What is next?", id),
    lastTurn: () => task.model.received("turn").at(-1)?.conversation ?? "",
    lastSummary: () => task.model.received("compaction").at(-1)?.conversation ?? "",
    /** Reverts the second message and all later ones. */
    revert: async () => {
      const messages = (await task.client.session.messages({ path })).data ?? []
      const second = messages.filter(({ info }) => info.role === "user")[1]
      const { error } = await task.client.session.revert({ path, body: { messageID: second?.info.id ?? "" } })
      expect(error).toBeUndefined()
    },
    unrevert: async () => expect((await task.client.session.unrevert({ path })).error).toBeUndefined(),
  }
}

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised(["compaction.C3", "compaction.C7"], "a compaction that is reverted and brought back is the same one"),
    async () => {
      const { ask, compact, lastSummary, lastTurn, records, revert, unrevert } = await openCompacted(binary)
      await ask()
      const note = lastTurn()
      await revert()
      await unrevert()
      await ask()
      expect(lastTurn().startsWith(note)).toBe(true)
      expect(note).toContain("(compaction 1 of this session)")
      await compact()
      expect(lastSummary()).toContain("Summary 1.")
      await ask()
      expect(lastTurn()).toContain("(compaction 2 of this session)")
      expect(await records(2)).toEqual(["Compaction 1: Summary 1.", "Compaction 2: Summary 2."])
    },
  )

  test(
    promised(["start.A1", "compaction.C3", "compaction.C7"], "a compaction that stays reverted is in no request"),
    async () => {
      const { ask, compact, lastSummary, lastTurn, records, revert } = await openCompacted(binary)
      await revert()
      await ask()
      expect(lastTurn()).toContain(TASK.specification)
      expect(lastTurn()).not.toMatch(/Summary 1\.|REVERTED-WORDS|was compacted/)
      await compact()
      expect(lastSummary()).not.toMatch(/Summary 1\.|REVERTED-WORDS/)
      await ask()
      expect(lastTurn()).toContain("(compaction 2 of this session)")
      expect(await records(2)).toEqual(["Compaction 1: Summary 1.", "Compaction 2: Summary 2."])
    },
  )
})
