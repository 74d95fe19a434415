import { describe, expect, test } from "vitest"
import { hookPermissions } from "../../../../.opencode/baton/host/opencode-2/permissions.ts"
import type { hookTools } from "../../../../.opencode/baton/host/opencode-2/tools.ts"
import { promised } from "../../../requirements.ts"

type Given = Parameters<typeof hookTools>[0]

/** One domain of OpenCode 2's context; `run` calls the hook of a name. */
const createHooked = () => {
  const hooks = new Map<string, (event: object) => Promise<void>>()
  return {
    hook: async (name: string, run: (event: object) => Promise<void>) => void hooks.set(name, run),
    run: async (name: string, event: object) => hooks.get(name)?.(event),
  }
}

describe("permissions", () => {
  const ask = async (directory: string, resource: string, action = "edit") => {
    const permission = createHooked()
    const location = { directory, project: { id: "p", directory: "/work/app" } }
    const rules = { edit: { ".opencode/tool/**": "ask", ".opencode/state/**": "deny", "opencode.json": "ask" } }
    const config = { agent: { build: { permission: rules } } } as unknown as Parameters<typeof hookPermissions>[1]
    await hookPermissions({ location, permission } as unknown as Given, config)
    const asked = { agent: "build", action, resources: [resource], effect: "allow" }
    await permission.run("evaluate", asked)
    return asked.effect
  }

  test.each([
    ["/work/app", ".opencode/tool/x.ts", "ask"],
    ["/work/app/src/deep", "../../.opencode/tool/x.ts", "ask"],
    ["/work/app/src", "../.opencode/state/x.json", "deny"],
    ["/work/app/src", "../opencode.json", "ask"],
    ["/work/app/src", "/work/app/opencode.json", "ask"],
    ["/work/app/src", "opencode.json", "allow"],
    ["/work/app/src", "/elsewhere/opencode.json", "allow"],
  ])(
    promised(["guard.A2", "v2.B5"], "in a session of %s an edit of %s is judged by its place in the worktree: %s"),
    async (directory, resource, effect) => {
      expect(await ask(directory, resource)).toBe(effect)
    },
  )
})
