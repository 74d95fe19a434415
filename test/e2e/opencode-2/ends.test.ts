import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { BOTH_ENDS, openTaskProject } from "../../support/index.ts"

/** Lines of OpenCode's log about a plugin: these call each export, and say of the entry for OpenCode 2 that they cannot. */
const FAILURES: Readonly<Record<string, number>> = { "1.2.15": 6, "1.3.2": 6 }

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(promised("v2.A2", "the entry for OpenCode 2 beside a feature's function leaves it served once"), async () => {
    const task = await openTaskProject(binary, () => ({ text: "Finished." }))
    const { stdout, stderr } = await task.runWell(task.message)
    const [turn, ...more] = task.model.received("turn")
    expect(more).toEqual([])
    expect(turn?.conversation.match(/\[Baton\] /g)).toHaveLength(1)
    const failures = task.project.log().match(/failed to load plugin/g) ?? []
    expect(failures).toHaveLength(FAILURES[binary.version] ?? 0)
    expect(`${stdout}${stderr}`).not.toMatch(/fn3|failed to load/i)
    expect(task.project.batonLog().filter((line) => line.includes("opencode-2"))).toEqual([])
  })
})
