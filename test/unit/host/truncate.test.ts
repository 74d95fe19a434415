import { expect, test } from "vitest"
import { truncate } from "../../../.opencode/baton/host/log.ts"
import { promised } from "../../requirements.ts"

test(promised("handoff.E2", "a text is cut between characters and never inside one"), () => {
  expect(truncate("ab😀cd", 3)).toBe("ab")
  expect(truncate("ab😀cd", 4)).toBe("ab😀")
  expect(truncate("short", 10)).toBe("short")
})
