import { describe, expect, test, vi } from "vitest"
import { addCommands } from "../../../../.opencode/baton/host/opencode-2/commands.ts"
import { hookPermissions } from "../../../../.opencode/baton/host/opencode-2/permissions.ts"
import { hookTools } from "../../../../.opencode/baton/host/opencode-2/tools.ts"
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

describe("tools", () => {
  const seenOf = async (event: object) => {
    const tool = createHooked()
    const seen = vi.fn()
    await hookTools({ tool } as unknown as Given, {
      "tool.execute.after": async ({ tool: name, args }, { metadata }) => seen(name, args, metadata),
    })
    await tool.run("execute.after", { sessionID: "ses_1", id: "call_1", ...event })
    return seen.mock.calls
  }
  const completed = (tool: string, input: object, metadata: object) =>
    seenOf({ tool, input, status: "completed", result: { metadata } })

  test.each(["edit", "write", "shell"])(
    promised("v2.A1", "a call of %s that failed or was refused changed nothing"),
    async (tool) => {
      const input = { path: "a.ts", command: "rm a.ts" }
      expect(await seenOf({ tool, input, status: "error", error: { message: "denied" } })).toEqual([])
    },
  )

  test(
    promised("v2.A1", "a command that ended is told with its exit, and one that goes on in the background not at all"),
    async () => {
      const metadata = { status: "completed", truncated: false }
      for (const end of [{ exit: 0 }, { exit: 1 }, { timeout: true }])
        expect(await completed("shell", { command: "x" }, { ...metadata, ...end })).toEqual([
          ["bash", { command: "x" }, { ...metadata, ...end }],
        ])
      expect(await completed("shell", { command: "serve" }, { status: "running", shellID: "x" })).toEqual([])
      expect(await completed("subagent", { agent: "general" }, { status: "completed" })).toHaveLength(1)
    },
  )
})

test(
  promised("v2.B4", "a command sends what was attached, without places in the text, and when to send it"),
  async () => {
    type Draft = { add(command: { execute(input: object): Promise<void> }): void }
    const prompt = vi.fn(async () => {})
    const execute: ((input: object) => Promise<void>)[] = []
    const transform = async (change: (draft: Draft) => void) =>
      change({ add: (each) => void execute.push(each.execute) })
    const context = { location: { directory: "/work/app" }, command: { transform }, session: { prompt } }
    const commands = { thing: { template: "Do $ARGUMENTS." } }
    const forget = await addCommands(context as unknown as Given, commands, ["thing"], async () => {})
    const mention = { start: 0, end: 5, text: "@a.ts" }
    const given = { text: "@a.ts", files: [{ uri: "file:///a.ts", mention }], skills: [{ id: "s", mention }] }
    await execute[0]?.({ sessionID: "ses_1", prompt: { ...given, agents: undefined }, delivery: "queue" })
    await execute[0]?.({ sessionID: "ses_1", prompt: {} })
    expect(prompt.mock.calls).toStrictEqual([
      [
        {
          sessionID: "ses_1",
          text: "Do @a.ts.",
          files: [{ uri: "file:///a.ts" }],
          skills: [{ id: "s" }],
          delivery: "queue",
        },
      ],
      [{ sessionID: "ses_1", text: "Do ." }],
    ])
    forget()
  },
)
