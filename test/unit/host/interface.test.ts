import { expect, test } from "vitest"
import { argumentsOf } from "../../../.opencode/baton/host/process-identity.ts"
import { detectUi } from "../../../.opencode/baton/host/tui.ts"
import { promised } from "../../requirements.ts"

test.each([
  [["serve", "--stdio", "--port", "0"], ["/bin/opencode", "run", "--standalone", "--auto"], "run"],
  [["serve", "--stdio", "--port", "0"], ["/bin/opencode", "--standalone"], "server"],
  [["serve", "--stdio", "--port", "0"], [], "server"],
  [["serve", "--port", "0"], ["/bin/opencode", "run"], "server"],
])(promised("v2.B11", "%j, started by %j, is shown by %s"), (own, parent, expected) => {
  const argv = ["bun", "/$bunfs/root/opencode", ...own]
  expect(detectUi({ argv, isMainThread: true, parent: () => parent })).toBe(expected)
})

test(promised("v2.B11", "a process that is not there has no command line"), () => {
  expect(argumentsOf(2 ** 30)).toEqual([])
  if (process.platform === "linux") expect(argumentsOf(process.pid).length).toBeGreaterThan(0)
})
