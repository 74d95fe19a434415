import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { BOTH_ENDS, bash } from "../../support/index.ts"
import { openWorkProject, stepOf, taskOf } from "../../support/opencode/work-project.ts"

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(promised("work.B1", "works through the queue, in the order of dependencies"), async () => {
    const work = await openWorkProject(binary, (request) =>
      stepOf(request) === 0 ? bash(`prog done ${taskOf(request)}`) : { text: "It is done." },
    )
    const [second, first] = [await work.add("Second"), await work.add("First")]
    await work.ledger.prog("blocks", first, second)
    const { exitCode, events, stderr } = await work.work()
    expect(exitCode, stderr + JSON.stringify(events)).toBe(0)
    expect(
      events.filter(({ event }) => event === "ended").map(({ task, kind, status }) => [task, kind, status]),
    ).toEqual([
      [first, "done", "done"],
      [second, "done", "done"],
    ])
    expect(await work.ends(first)).toEqual(["Run 1 ended: done"])
  })
})
