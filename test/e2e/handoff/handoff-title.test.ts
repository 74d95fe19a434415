import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { BOTH_ENDS, eventually, openSharedTask } from "../../support/index.ts"
import { handoffScript } from "../../support/model/handoff-script.ts"
import { speak } from "../../support/opencode/model-project.ts"
import { handOver, lastTurn, messagesOf } from "../sessions.ts"

const GOAL = "Make the tests pass on Windows"
const FILE = "export const parse = () => 1"

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(promised("people.A2a", "no model is asked for a title with the files that a draft brings"), async () => {
    const script = handoffScript({ prompt: "Finish the CRLF work.", files: ["src/parser.ts"] })
    const task = await openSharedTask(binary, script)
    const { client, model, project, say } = task
    project.write("src/parser.ts", `${FILE}\n`)
    const stored = await handOver(task, await say(task.message), GOAL)
    const [message] = await messagesOf(task, stored)
    const draft = message?.parts.find((part) => part.type === "text")?.text ?? ""
    const titleOf = async (id: string) => (await client.session.get({ path: { id } })).data?.title

    // As the TUI does: in a session without a title.
    const sent = await say(draft)
    expect(lastTurn(task)).toContain(FILE)
    expect(await titleOf(sent)).toBe(`Handoff: ${GOAL}`)

    const named = (await client.session.create({ body: { title: "By hand" } })).data?.id ?? ""
    await speak(task, named, draft)
    expect(lastTurn(task)).toContain(FILE)
    expect(await titleOf(named)).toBe("By hand")

    // A title is asked for beside the turn: this one's comes last.
    await say("Which tests are there?")
    const asked = () => model.received("title").map(({ conversation }) => conversation)
    await eventually("the title's request", () => asked().find((text) => text.includes("Which tests are there?")))
    expect(asked().filter((text) => text.includes(FILE) || text.includes("Continuing work from session"))).toEqual([])
  })
})
