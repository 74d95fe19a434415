import { describe, expect, test } from "vitest"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import { promised } from "../../requirements.ts"
import { eventually, MODEL, NEWEST, occurrences, openTaskProject, startServer } from "../../support/index.ts"
import { handoffScript } from "../../support/model/handoff-script.ts"
import { isTmuxHere, startTerminal, startTui } from "../../support/opencode/tui.ts"
import { expectInOrder, recordsOf, runWell, turnsOf } from "../sessions.ts"

const MARKER = "Continuing work from session"
const HANDED_OVER = { prompt: "Finish the CRLF work.", files: ["src/parser.ts", "README.md"], start: true }

// scripts/test warns that these are left out.
describe.skipIf(!isTmuxHere())("OpenCode in a terminal", () => {
  test(
    promised(["handoff.B2", "handoff.E1", "handoff.F2", "people.A2a"], "the draft is in the prompt, once"),
    async () => {
      const typed = createDeferred<void>()
      const script = handoffScript(HANDED_OVER)
      const task = await openTaskProject(NEWEST, async (request) => {
        const reply = await script(request)
        if ("tool" in reply && reply.tool === "handoff_session") await typed.promise
        return reply
      })
      task.project.write("src/parser.ts", "export const parse = () => 1\n")
      const tui = await startTui(NEWEST, task.project)
      try {
        await tui.send(`Task: ${task.taskID}`)
        await tui.shows("Noted.")
        await tui.send("/handoff Make Windows work")
        const requestWith = (...parts: string[]) =>
          eventually(`a request with ${parts.join()}`, () =>
            turnsOf(task).find((text) => parts.every((p) => text.includes(p))),
          )
        await requestWith("Hand this work over")
        tui.type("TYPED-BEFORE ")
        await tui.shows("TYPED-BEFORE")
        typed.resolve()
        // The prompt shows the end of a long draft.
        await tui.shows("Baton: Handoff Ready")
        await tui.shows("gathered by program")
        await requestWith("Not started: in the TUI the user decides: /handoff --start")
        expect(turnsOf(task).some((text) => text.startsWith("[user] TYPED-BEFORE"))).toBe(false)
        tui.press("Enter")
        const text = await requestWith("[user] TYPED-BEFORE", MARKER)
        expect(text.startsWith("[user] TYPED-BEFORE")).toBe(true)
        expect(occurrences(text, MARKER)).toBe(1)
        expect(occurrences(text, "TYPED-BEFORE")).toBe(1)
        expectInOrder(text, [
          "TYPED-BEFORE",
          MARKER,
          "@src/parser.ts @README.md",
          `Task: ${task.taskID}`,
          HANDED_OVER.prompt,
          "Called the Read tool with the following input:",
          "00001| export const parse = () => 1",
          "00001| # A project under test",
        ])

        await tui.shows("Noted.")
        await tui.shows("Handoff: Make Windows work")
        const titles = task.model.received("title").map(({ conversation }) => conversation)
        expect(titles.filter((asked) => asked.includes(MARKER))).toEqual([])
        await tui.send("READ-THE-OLD-ONE")
        const second = await requestWith("(End of session - ")
        expect(occurrences(second, "00001| export const parse")).toBe(1)
        expect(second).toContain(`## User\nTask: ${task.taskID}`)
        const record = /^Handoff to ses_\w+: Make Windows work$/
        await eventually("the record", async () => (await recordsOf(task)).find((message) => record.test(message)))
        await tui.shows("Done.")
        await tui.send("/handoff --start Make macOS work")
        await requestWith("Handoff started: the new session ses_")
        await eventually("the started session's request", () =>
          turnsOf(task).find((text) => text.startsWith(`[user] ${MARKER}`) && text.includes("`Make macOS work`")),
        )
      } finally {
        await tui.stop()
      }
    },
  )

  test(promised("handoff.B6", "a session with rules of its own hands over to a stored one"), async () => {
    const task = await openTaskProject(NEWEST, handoffScript(HANDED_OVER))
    const server = await startServer(NEWEST, task.project)
    const permission = [{ permission: "webfetch", pattern: "*", action: "deny" as const }]
    const body = { title: "By hand", permission }
    const id = (await server.client.session.create({ body })).data?.id ?? ""
    await server.client.session.prompt({
      path: { id },
      body: { model: MODEL, parts: [{ type: "text", text: task.message }] },
    })
    await server.stop()
    const tui = startTerminal([NEWEST.path, "--session", id], task.project)
    try {
      await tui.shows("Noted.")
      await tui.send("/handoff Make Windows work")
      await tui.shows("Baton: Handoff Ready")
      await eventually("the answer", () =>
        turnsOf(task).find((text) => text.includes("stored in the new session ses_")),
      )
      expect(tui.screen()).not.toContain("gathered by program")
    } finally {
      await tui.stop()
    }
  })

  test(
    promised(["handoff.B2", "handoff.B6"], "a session of `opencode run`, gone on with, hands over to the prompt"),
    async () => {
      const task = await openTaskProject(NEWEST, handoffScript(HANDED_OVER))
      await runWell(task, task.message)
      const tui = startTerminal([NEWEST.path, "--continue"], task.project)
      try {
        await tui.shows("Noted.")
        await tui.send("/handoff Make Windows work")
        await tui.shows("Baton: Handoff Ready")
        await tui.shows("gathered by program")
      } finally {
        await tui.stop()
      }
    },
  )
})
