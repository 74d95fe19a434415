import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { deadline, IS_NIGHT } from "../../support/index.ts"
import {
  measureRetention2,
  retentionScript2,
  SUMMARISERS_2,
  type Summariser2,
} from "../../support/model/retention-2.ts"
import { openTask2 } from "../../support/opencode/opencode-2.ts"
import { HAS_OPENCODE_2 } from "../../support/opencode/opencode-binary.ts"

const COMPACTIONS = IS_NIGHT ? 10 : 3
const TIMEOUT_MS = deadline(200_000)

/** A run with as many compactions, and one more message to its session. */
const live = async (summariser: Summariser2, bundle: "none" | "project") => {
  const task = await openTask2(retentionScript2(COMPACTIONS, summariser), { bundle })
  const { exitCode } = await task.run(task.message)
  const turns = task.model.received("turn").length
  const { exitCode: again } = await task.run("go on", { args: ["-c"] })
  const isAnswered = again === 0 && task.model.received("turn").length > turns
  return { exitCode, isAnswered, ...measureRetention2(task.model.requests, task.taskID) }
}

describe.runIf(HAS_OPENCODE_2)("OpenCode 2.0.15", () => {
  test.each(SUMMARISERS_2)(
    promised("v2.C2", "no summary ends a session with Baton, or takes its task: %s"),
    async (summariser) => {
      const seen = await live(summariser, "project")
      expect(seen).toMatchObject({ exitCode: 0, isAnswered: true })
      expect(seen.named).toBe(seen.lived)
      expect(seen.lived).toBeGreaterThanOrEqual(COMPACTIONS)
      if (summariser === "faithful") expect(seen.facts).toBe(COMPACTIONS)
    },
    TIMEOUT_MS,
  )

  test.each(["careless", "empty", "refusing"] as const)(
    promised("v2.C2", "without Baton a session ends with the first summary that is %s, and stays dead"),
    async (summariser) => {
      expect(await live(summariser, "none")).toMatchObject({ isAnswered: false, lived: 0 })
    },
    TIMEOUT_MS,
  )
})
