import { expect, test } from "vitest"
import { cutText } from "../../../.opencode/baton/host/log.ts"
import { promised } from "../../requirements.ts"

test(promised("handoff.E2", "a text is cut between characters and never inside one"), () => {
  expect(cutText("ab😀cd", 3)).toBe("ab")
  expect(cutText("ab😀cd", 4)).toBe("ab😀")
  expect(cutText("short", 10)).toBe("short")
})
