import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { FULL_TOKENS, openServer2, openTask2, type Server2 } from "../../support/opencode/opencode-2.ts"
import { HAS_OPENCODE_2 } from "../../support/opencode/opencode-binary.ts"

const FULL = { text: "Half of it is done.", promptTokens: FULL_TOKENS } as const
const WRONG = "Delete the legacy module."
const RIGHT = "Keep the legacy module, and document it."

/** Undoes a message and all behind it, as the interface does. */
const undo = async (server: Server2, id: string, text: string): Promise<void> => {
  const { data } = await server.api("GET", `/session/${id}/message`)
  const { data: messages } = data as { data: { id: string; type: string; text?: string }[] }
  const messageID = messages.find((message) => message.text === text)?.id
  await server.api("POST", `/session/${id}/revert/stage`, { messageID })
}

describe.runIf(HAS_OPENCODE_2)("an undo in OpenCode 2.0.15", () => {
  test(
    promised(
      "v2.B9",
      "an undo in OpenCode 2.0.15 keeps an order from later requests, from a compaction and from the next session",
    ),
    async () => {
      const task = await openTask2(({ kind, index }) => {
        if (kind === "compaction") return { text: "## Done\n- Nothing yet." }
        return index === 2 ? FULL : { text: "Going on." }
      })
      await using server = await openServer2(task.project)
      const id = await server.say(task.message)
      await server.say(WRONG, id)
      await undo(server, id, WRONG)
      await server.say(RIGHT, id)
      await server.say("go on", id)
      const [asked] = task.model.received("compaction")
      const { conversation } = task.model.received("turn").at(-1) ?? {}
      const next = await server.say(task.message)
      // On a busy machine the first request may go without the note.
      await server.say("go on", next)
      for (const shown of [asked?.conversation, conversation, task.model.received("turn").at(-1)?.conversation]) {
        expect(shown).toContain(RIGHT)
        expect(shown).not.toContain(WRONG)
      }
    },
  )

  test(
    promised(
      "v2.B9",
      "an undo in OpenCode 2.0.15 takes an order given after a compaction, and leaves what was said before it",
    ),
    async () => {
      const task = await openTask2(({ kind, index }) => {
        if (kind === "compaction") return { text: "## Done\n- Nothing yet." }
        return index === 1 ? FULL : { text: "Going on." }
      })
      await using server = await openServer2(task.project)
      const id = await server.say(task.message)
      await server.say(RIGHT, id)
      await server.say(WRONG, id)
      await undo(server, id, WRONG)
      await server.say("go on", id)
      const words = task.project.read(`.opencode/state/tasks/${id}.json`)
      expect(words).toContain(RIGHT)
      expect(words).not.toContain(WRONG)
    },
  )

  test(promised("v2.B9", "an undo in OpenCode 2.0.15 that is taken back brings the order back"), async () => {
    const task = await openTask2(() => ({ text: "Going on." }))
    await using server = await openServer2(task.project)
    const id = await server.say(task.message)
    await server.say(RIGHT, id)
    await undo(server, id, RIGHT)
    await server.api("DELETE", `/session/${id}/revert`)
    await server.say("go on", id)
    expect(task.project.read(`.opencode/state/tasks/${id}.json`)).toContain(RIGHT)
  })
})
