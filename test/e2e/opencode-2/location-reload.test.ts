import { existsSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { eventually, LEDGER_WAIT_MS } from "../../support/index.ts"
import { openServer2, openTask2 } from "../../support/opencode/opencode-2.ts"
import { HAS_OPENCODE_2 } from "../../support/opencode/opencode-binary.ts"

describe.runIf(HAS_OPENCODE_2)("a folder that OpenCode 2.0.15 opens anew", () => {
  test(promised("v2.A3", "a reload during a turn leaves Baton hearing what comes after it"), async () => {
    const command = "touch begun; until [ -e go ]; do sleep 0.1; done"
    const task = await openTask2(({ kind, index }) => {
      if (kind === "compaction") return { text: "## Done\n- The parser is begun." }
      return index === 0 ? { tool: "shell", input: { command, description: "d" } } : { text: "Going on." }
    })
    await using server = await openServer2(task.project)
    const opened = () => task.project.batonLog().filter((line) => line.includes("not there yet")).length
    const turn = server.say(task.message)
    await eventually("the command", () => (existsSync(join(task.project.directory, "begun")) ? true : undefined))
    expect(opened()).toBe(1)
    await server.api("POST", "/location/reload", {})
    await eventually("the folder, opened anew", () => (opened() === 2 ? true : undefined))
    task.project.write("go", "")
    const id = await turn
    await server.say("go on", id)
    expect(task.model.received("turn").at(-1)?.conversation).toContain(task.taskID)
    await server.api("POST", `/session/${id}/compact`, {})
    const recorded = async () => (await task.ledger.messages(task.taskID))[0]
    expect(await eventually("the record", recorded, ...LEDGER_WAIT_MS)).toContain("The parser is begun.")
    expect(task.project.batonLog().filter((line) => /level=ERROR/.test(line))).toEqual([])
  })
})
