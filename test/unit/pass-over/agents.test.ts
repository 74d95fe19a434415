import { join } from "node:path"
import type { Config } from "@opencode-ai/plugin"
import { describe, expect, test } from "vitest"
import type { PermissionRule } from "../../../.opencode/baton/host/permissions.ts"
import {
  findSkillAgents,
  parseFrontMatter,
  registerAgents,
  rulesForPasses,
} from "../../../.opencode/baton/pass-over/agents.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { preparedPass } from "../../support/opencode/pass-over-values.ts"
import { writeFiles } from "../../support/opencode/pass-project.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

describe("front matter", () => {
  test(promised("pass-over.F1", "front matter is maps of texts and booleans, and the rest is the body"), () => {
    const text =
      '---\nname: a # not this\nsubagent: true\npermission:\n  bash:\n    "git *": allow\n    "*": deny\n  edit: deny\n---\n\nBody.\n'
    expect(parseFrontMatter(text)).toEqual({
      data: { name: "a", subagent: true, permission: { bash: { "git *": "allow", "*": "deny" }, edit: "deny" } },
      body: "Body.",
    })
  })

  test.each([
    "no front matter",
    "---\nlist:\n  - a\n---\nx",
    "---\ntext: |\n  a\n---\nx",
    "---\na: 1\n   b: 2\n---\nx",
  ])(promised("pass-over.F1", "front matter that is more than that is not read: %j"), (text) => {
    expect(parseFrontMatter(text)).toBeUndefined()
  })
})

test(promised("pass-over.F1", "skills are agents where they ask for it, by either folder and form"), async () => {
  const asking = (name: string) => `---\nname: ${name}\ndescription: d\nsubagent: true\n---\nPrompt of ${name}.\n`
  const root = temporaryFolder()
  writeFiles(join(root, ".opencode"), {
    "skill/one.md": asking("one"),
    "skills/two/SKILL.md": asking("two"),
    "skills/three/SKILL.md": "---\nsubagent: true\n---\nNamed by its folder.\n",
    "skill/plain.md": "---\nname: plain\n---\nNo agent.\n",
    "skill/broken.md": "---\nsubagent: true\nlist:\n  - a\n---\nx\n",
  })
  const log = createRecordedLog()
  const found = await findSkillAgents(root, log)
  expect(found.map(({ name }) => name)).toEqual(["skill/one", "skill/three", "skill/two"])
  expect(found[0]?.prompt).toBe("Prompt of one.")
  expect(log.lines.map(({ message }) => message)).toEqual([
    "a skill asks to be a subagent and its front matter cannot be used",
  ])
})

describe("agents", () => {
  const register = (config: Config) => {
    registerAgents(config, [], createRecordedLog())
    return config as { agent: Record<string, { permission?: unknown; prompt?: string }>; permission: unknown }
  }

  test(promised("pass-over.C3", "agents that are ready-made may read, and neither write nor see secrets"), () => {
    const { agent } = register({})
    expect(agent.audit?.permission).toMatchObject({ "*": "deny", read: { "*.env": "deny" }, pass_over_return: "allow" })
  })

  test(promised("pass-over.A2", "agents that are denied everything may return"), () => {
    const { agent } = register({ agent: { strict: { permission: { "*": "deny" } as never } } })
    expect(agent.strict?.permission).toEqual({ "*": "deny", pass_over_return: "allow" })
  })

  test(
    promised("pass-over.A6", "agents ask before a result goes back, unless the user's own rules have a word on it"),
    () => {
      expect(register({}).permission).toMatchObject({ pass_over_result: "ask", pass_over_return: "allow" })
      expect(register({ permission: "allow" as never }).permission).not.toHaveProperty("pass_over_result")
      for (const action of ["deny", "ask"] as const)
        expect(register({ permission: { "*": action } as never }).permission).toMatchObject({ pass_over_result: "ask" })
      const own = { pass_over_result: "deny" }
      const both = { pass_over_result: "deny", "pass_over_result *": "deny" }
      expect(register({ permission: own as never }).permission).toMatchObject(both)
      const agent = register({ agent: { mine: { permission: own as never } } }).agent.mine
      expect(agent?.permission).toMatchObject(both)
    },
  )

  const permission = (rules: object) => ({ permission: rules as never })

  test(
    promised("pass-over.A8", "agents that are ready-made are not in the task tool's list, unless the user says so"),
    () => {
      const hidden = { audit: "deny", scout: "deny" }
      expect(register({}).permission).toMatchObject({ task: hidden })
      expect(register(permission({ task: "ask" })).permission).toMatchObject({ task: { "*": "ask", ...hidden } })
      expect(register(permission({ task: { audit: "allow" } })).permission).toMatchObject({
        task: { audit: "allow", scout: "deny" },
      })
      const own = register({ agent: { audit: { prompt: "mine" } } })
      expect(own.permission).toMatchObject({ task: { scout: "deny" } })
    },
  )

  test(
    promised(["pass-over.C3", "pass-over.F2"], "agents that are ready-made get passes where no user denies them"),
    () => {
      expect(register(permission({ task: { audit: "deny" } })).agent.audit).toBeUndefined()
      const { prompt = "" } = register({}).agent.audit ?? {}
      const { subagent } = preparedPass()
      const deny = (pattern: string) => ({ permission: "task", pattern, action: "deny" }) as const
      const rules = (given: readonly PermissionRule[], own = prompt) =>
        rulesForPasses(given, { ...subagent, prompt: own })
      expect(rules([deny("audit")])).toEqual([])
      expect(rules([deny("*"), deny("audit"), deny("audit")])).toEqual([deny("*"), deny("audit")])
      expect(rules([deny("audit")], "mine")).toEqual([deny("audit")])
    },
  )
})
