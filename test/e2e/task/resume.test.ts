import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { BOTH_ENDS, closeTaskProjects, MODEL, occurrences, openSharedTask } from "../../support/index.ts"

closeTaskProjects()

const BRIEF = "Never touch the lexer."
const HANDOFF = "The fold in line 12 is proven; the CRLF test comes next."

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised("start.A2", "what the first session was asked and left behind outlives a careless compaction of the next"),
    async () => {
      const task = await openSharedTask(binary, ({ kind, index }) => {
        if (kind !== "compaction") return { text: "Noted." }
        return { text: index === 0 ? HANDOFF : "Some work was done and it went fine." }
      })
      const { client, model, say, taskID } = task
      const compact = (id: string) => client.session.summarize({ path: { id }, body: MODEL })

      const first = await say(`Task: ${taskID}\n${BRIEF}`)
      await compact(first)
      await task.records(1)

      const second = await say(`Task: ${taskID}`)
      await compact(second)
      await task.records(2)
      await say("What is next?", second)
      const [, request] = model.received("compaction")
      const note = model.received("turn").at(-1)
      for (const [name, text = ""] of [
        ["the request for a summary", request?.conversation],
        ["the note after it", note?.conversation],
      ] as const) {
        expect(occurrences(text, BRIEF), `the brief in ${name}`).toBe(1)
        expect(occurrences(text, HANDOFF), `the handoff in ${name}`).toBe(1)
      }

      await say(`Task: ${taskID}`)
      const third = model.received("turn").at(-1)?.conversation ?? ""
      expect(third).toContain(`by session ${second}`)
      expect(occurrences(third, BRIEF)).toBe(1)
    },
  )
})
