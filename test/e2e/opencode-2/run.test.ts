import { expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { eventually, LEDGER_WAIT_MS } from "../../support/index.ts"
import { openServer2, openTask2 } from "../../support/opencode/opencode-2.ts"
import { HAS_OPENCODE_2 } from "../../support/opencode/opencode-binary.ts"

if (HAS_OPENCODE_2)
  test(promised("v2.B11", "an agent's run on 2.0.15 is kept with its end, a person's session is none"), async () => {
    const task = await openTask2(() => ({ text: "I stop here." }))
    await using server = await openServer2(task.project)
    await server.say(task.message)
    const runs = async (): Promise<{ session_id: string; kind: string }[]> =>
      JSON.parse(await task.ledger.prog("runs", task.taskID, "--json"))
    expect(await runs()).toEqual([])
    await task.runWell(task.message)
    // Its server may end after it.
    await eventually("the run's record", async () => (await runs())[0], ...LEDGER_WAIT_MS)
    expect(await runs()).toEqual([expect.objectContaining({ session_id: expect.stringMatching(/^ses_/) })])
  })
