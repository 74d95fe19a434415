import { join } from "node:path"
import type { Config, Hooks, PluginInput } from "@opencode-ai/plugin"
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest"
import { enterCopy, openCore } from "../../../.opencode/baton/core/core.ts"
import { markState } from "../../../.opencode/baton/host/state-mark.ts"
import { createPassOverHooks, findServing } from "../../../.opencode/baton/pass-over/hooks.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { writeFiles } from "../../support/opencode/pass-project.ts"
import { userMessage } from "../../support/opencode/stored-messages.ts"

// A hook has one second, and a busy machine may need longer to load the files.
beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }))

const hooksOf = (directory: string): Hooks => {
  const client = { app: { log: async () => ({ data: true }) } }
  const hooks = createPassOverHooks(openCore({ client, directory, worktree: directory } as unknown as PluginInput))
  onTestFinished(async () => hooks.dispose?.())
  return hooks
}

/** The hooks in a project with these files below `.opencode`. */
const hooksIn = (...files: string[]): Hooks => {
  const directory = temporaryFolder()
  for (const file of files) {
    writeFiles(join(directory, ".opencode"), { [file]: "{}" })
    if (file.startsWith("state/")) markState(join(directory, ".opencode", "state"))
  }
  return hooksOf(directory)
}

/** The tools that are left out of a request of the session `ses_1`. */
const leftOut = async (hooks: Hooks): Promise<string[]> => {
  await hooks.config?.({} as Config)
  const message = userMessage([], "msg_1")
  message.info.sessionID = "ses_1"
  await hooks["experimental.chat.messages.transform"]?.({}, { messages: [message] })
  return message.info.role === "user" ? Object.keys(message.info.tools ?? {}) : []
}

describe("the hooks of passes", () => {
  const DECIDING = ["pass_over_apply", "pass_over_reject", "pass_over_status"]

  test(promised("pass-over.A11", "the hooks of passes are none without the file"), () => {
    expect(hooksIn("baton/package.json")).toEqual({})
  })

  test(
    promised(
      "passes.A8",
      "the hooks of passes serve other plugins until a copy of the bundle that counts more is loaded",
    ),
    () => {
      const directory = temporaryFolder()
      writeFiles(join(directory, ".opencode"), { "pass-over.json": "{}" })
      hooksOf(directory)
      expect(findServing(directory)).toBeTypeOf("function")
      expect(findServing(`${directory}/other`)).toBeUndefined()
      const own = join(directory, ".opencode", "baton")
      enterCopy({ feature: "pass-over", directory, projectRoot: directory, bundleRoot: own })
      expect(findServing(directory)).toBeUndefined()
    },
  )

  test(
    promised("package.D1", "the hooks of passes follow the policy of the copy that serves a project without its own"),
    () => {
      expect(Object.keys(hooksIn())).toContain("tool")
    },
  )

  test.each([
    ["that has made none", "pass-over.json", ["pass_over_return", ...DECIDING]],
    ["that has made one", "state/pass-over/by-session/ses_1/pass_20260101102030000_abcd", ["pass_over_return"]],
  ])(
    promised("pass-over.A8", "the hooks of passes leave a session %s the tools that it can use"),
    async (_which, file, expected) => {
      const hooks = hooksIn("pass-over.json", file)
      expect(await leftOut(hooks)).toEqual(expected)
      expect(Object.keys(hooks.tool ?? {})).toEqual(["pass_over", "pass_over_return", ...DECIDING])
    },
  )
})
