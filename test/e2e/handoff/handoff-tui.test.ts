import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { closeTaskProjects, eventually, NEWEST, openTaskProject } from "../../support/index.ts"
import { handoffScript } from "../../support/model/handoff-script.ts"
import { isTmuxHere, startTui } from "../../support/opencode/tui.ts"

closeTaskProjects()

const MARKER = "Continuing work from session"
const HANDED_OVER = { prompt: "Finish the CRLF work.", files: ["src/parser.ts", "README.md"] }
const times = (text: string, part: string): number => text.split(part).length - 1

// scripts/test warns that these are left out.
const isMissing = !isTmuxHere()

describe.skipIf(isMissing)("OpenCode in a terminal", () => {
  const binary = NEWEST
  test(
    promised(
      ["handoff.B2", "handoff.E1"],
      "/handoff puts the draft into a new session's prompt, once, behind what the user had typed",
    ),
    async () => {
      let release = (): void => {}
      const typed = new Promise<void>((resolve) => {
        release = resolve
      })
      const script = handoffScript(HANDED_OVER)
      const task = await openTaskProject(binary, async (request) => {
        const reply = await script(request)
        if ("tool" in reply && reply.tool === "handoff_session") await typed
        return reply
      })
      task.project.write("src/parser.ts", "export const parse = () => 1\n")
      const tui = await startTui(binary, task.project)
      try {
        await tui.send(`Task: ${task.taskID}`)
        await tui.shows("Noted.")
        await tui.send("/handoff Make Windows work")
        await eventually("the request for the handoff", () =>
          task.model.received("turn").find(({ conversation }) => conversation.includes("Hand this work over")),
        )
        tui.type("TYPED-BEFORE ")
        await tui.shows("TYPED-BEFORE")
        release()
        // The prompt shows the end of a long draft.
        await tui.shows("Handoff Ready")
        await tui.shows("gathered by program")
        tui.press("Enter")
        const sent = await eventually("the draft at the model", () =>
          task.model.received("turn").find(({ conversation }) => {
            const last = conversation.slice(conversation.lastIndexOf("TYPED-BEFORE"))
            return conversation.startsWith("[user] TYPED-BEFORE") && last.includes(MARKER)
          }),
        )
        const text = sent.conversation
        expect(times(text, MARKER)).toBe(1)
        expect(times(text, "TYPED-BEFORE")).toBe(1)
        const inOrder = [
          "TYPED-BEFORE",
          MARKER,
          "@src/parser.ts @README.md",
          `Task: ${task.taskID}`,
          HANDED_OVER.prompt,
          "Called the Read tool with the following input:",
          "00001| export const parse = () => 1",
          "00001| # A project under test",
        ].map((part) => text.indexOf(part))
        expect(
          inOrder.every((at) => at >= 0),
          text,
        ).toBe(true)
        expect(inOrder).toEqual(inOrder.toSorted((a, b) => a - b))

        await tui.shows("Noted.")
        await tui.send("READ-THE-OLD-ONE")
        const second = await eventually("the old session at the model", () =>
          task.model.received("turn").find(({ conversation }) => conversation.includes("(End of session - ")),
        )
        expect(times(second.conversation, "00001| export const parse")).toBe(1)
        expect(second.conversation).toContain(`## User\nTask: ${task.taskID}`)
        const logs = await eventually("the record", async () => {
          const messages = (await task.ledger.show(task.taskID)).logs.map(({ message }) => message)
          return messages.find((message) => /^Handoff to ses_\w+: Make Windows work$/.test(message))
        })
        expect(logs).toContain("Make Windows work")
      } finally {
        await tui.stop()
      }
    },
  )
})
