import { describe, expect } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  COMPACTING_STEP,
  eventually,
  newestOrder,
  openSharedTask,
  type Script,
  TASK,
  testsOnce,
} from "../../support/index.ts"
import { collectToasts } from "../sessions.ts"

const CORRECTION = "No, use tabs instead of spaces in the formatter."

const script: Script = (request) => {
  if (request.kind === "compaction") return { text: "## Done\n- The lexer.\n\n## Next\n- Write the CRLF test." }
  const last = newestOrder(request)
  if (last.includes("[tool]")) return { text: "Noted." }
  return last.includes("COMPACT-NOW") ? COMPACTING_STEP : { text: "Noted." }
}

const countOf = (toasts: readonly string[], expected: number): Promise<boolean> =>
  eventually(`${expected} toasts`, () => (toasts.length >= expected ? true : undefined), 60_000)

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  once(promised("notices.A1", "a session's events are told once each, its process ending or not"), async () => {
    const task = await openSharedTask(binary, script)
    const toasts = await collectToasts(task)
    const { taskID } = task
    const first = await task.say(`Task: ${taskID}`)
    await task.say(`${CORRECTION} COMPACT-NOW`, first)
    await task.say("Go on.", first)
    await countOf(toasts, 3)
    await task.restart()
    // Events are those of an instance, which begins with a request.
    await task.say("Hello.")
    const again = await collectToasts(task)
    await task.say("Go on.", first)
    await task.say(`Task: ${taskID}`)
    await countOf(again, 1)
    expect(toasts.toSorted()).toEqual([
      `Baton: compaction 1 recorded: ${taskID} · next: Write the CRLF test.`,
      `Baton: learned: “${CORRECTION}”`,
      `Baton: task ${taskID}: ${TASK.title} · open`,
    ])
    expect(again, again.join("\n")).toHaveLength(1)
    expect(again[0]).toMatch(new RegExp(`^Baton: task ${taskID}: .* · in_progress\nGoes on from session ${first} `))
  })

  once(promised("notices.A2", "only problems are told where the setting says so"), async () => {
    const task = await openSharedTask(binary, script)
    task.project.write(".opencode/baton.json", JSON.stringify({ notices: "problems" }))
    const toasts = await collectToasts(task)
    const wrong = task.taskID.replace(/.$/, (digit) => (digit === "7" ? "8" : "7"))
    await task.say(`Task: ${task.taskID}`)
    await task.say(`Task: ${wrong}`)
    await countOf(toasts, 1)
    expect(toasts).toEqual([expect.stringMatching(new RegExp(`^Baton: no task ${wrong}: `))])
  })
})
