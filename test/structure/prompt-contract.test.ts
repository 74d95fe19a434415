import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { DEFAULT_HANDOFF_PROMPT } from "../../.opencode/baton/compaction/context.ts"
import { extractBrief, parseTask, ROLES, type Role } from "../../.opencode/baton/task/parse.ts"
import { createPromptFiles, extractProtocol, fillTaskID, type PromptName } from "../../.opencode/baton/task/prompts.ts"
import { promised } from "../requirements.ts"
import { REPOSITORY } from "../support/opencode/opencode-binary.ts"

const TASK_ID = "ts-b54507"
const PLUGIN = ".opencode/plugins/compaction-handoff.ts"

const PROTOCOL_CHARACTERS = { min: 600, max: 1_200 }
const HANDOFF_MAX_CHARACTERS = 3_000

/** Commands of `prog` in every version from v0.17 on; `block` went with it, `draft` came after it. */
const PROG_COMMANDS = "add append blocks context desc done graph learn list log review show start".split(" ")

const STATES: Record<Role, string> = {
  worker: "orient → feedback loop → implement → verify → review → fix → land",
  planner: "orient → identify gaps → write tasks → verify completeness",
}

const prompt = (name: string): string => readFileSync(join(REPOSITORY, "prompts", `${name}.md`), "utf8")

const headings = (markdown: string): string[] => markdown.split("\n").filter((line) => line.startsWith("## "))

describe.each(ROLES)("prompts/%s.md", (role) => {
  test(promised("compaction.C10", "a role prompt opens with its role and its reader, and states task and role"), () => {
    const markdown = prompt(role)
    const filled = fillTaskID(markdown, TASK_ID)
    expect(markdown.toLowerCase()).toMatch(new RegExp(`^# ${role}\n`))
    expect(/<!--[\s\S]*?-->/.exec(markdown.split("Task:")[0] ?? "")?.[0]).toContain(PLUGIN)
    expect(markdown).toContain("\n```\nTask: {{task_id}}\n```\n")
    expect(parseTask(markdown), "before the id is filled in").toBeUndefined()
    for (const text of [filled, `"${filled.replaceAll('"', '\\"')}"`])
      expect(parseTask(text), "also in the quotes of opencode run").toMatchObject({ taskID: TASK_ID, role })
    expect(extractBrief(`${filled}\nMake it fast.\n`)).toBe("Make it fast.")
    const size = extractProtocol(markdown, { taskID: TASK_ID })?.length ?? 0
    expect(size).toBeGreaterThanOrEqual(PROTOCOL_CHARACTERS.min)
    expect(size).toBeLessThanOrEqual(PROTOCOL_CHARACTERS.max)
  })

  test(promised("compaction.C10", "a role prompt works through the role's states, in full and in short"), () => {
    const markdown = prompt(role)
    const protocol = extractProtocol(markdown, { taskID: TASK_ID })
    for (const part of [STATES[role], `prog show ${TASK_ID}`, `prog log ${TASK_ID} "Blocked:`])
      expect(protocol).toContain(part)
    expect(protocol).not.toContain("{{")
    for (const [index, state] of STATES[role].split(" → ").entries())
      expect(markdown.toLowerCase()).toContain(`\n${index + 1}. **${state}.**`)
  })

  test(promised("compaction.C10", "a role prompt names only commands that prog has"), () => {
    const named = [...prompt(role).matchAll(/(?:`| {4})prog ([a-z]+) /g)].map(([, command]) => command)
    expect(named.length).toBeGreaterThan(10)
    for (const command of named) expect(PROG_COMMANDS).toContain(command)
  })
})

describe("prompts/handoff.md", () => {
  test(promised("compaction.C10", "prompts/handoff.md asks for all a handoff needs, as the built-in text does"), () => {
    expect(headings(prompt("handoff"))).toEqual([
      ...["## Done", "## In progress", "## Files being changed", "## Next", "## Tried and failed"],
      ...["## Constraints and decisions that must persist", "## Technical decisions and why", "## Protocol state"],
      "## Recording",
    ])
    expect(headings(DEFAULT_HANDOFF_PROMPT)).toEqual(headings(prompt("handoff")))
  })

  test.each([
    ["the file", prompt("handoff")],
    ["the built-in text", DEFAULT_HANDOFF_PROMPT],
  ])(
    promised("compaction.C10", "prompts/handoff.md is short, says that there are no tools, and names no task: %s"),
    (_which, text) => {
      expect(text.length).toBeLessThan(HANDOFF_MAX_CHARACTERS)
      expect(text).toContain("You have no tools")
      expect(text).toMatch(/already recorded[\s\S]*prog log ID[\s\S]*prog desc[\s\S]*specification left word for word/)
      expect(parseTask(text)).toBeUndefined()
    },
  )
})

const COMMENTED: PromptName[] = ["handoff", "handoff-command"]
test.each(COMMENTED)(promised("start.A4", "prompts/%s.md opens with its contract comment"), async (name) => {
  const [comment = "", ...rest] = prompt(name).split("\n")
  expect(comment).toMatch(new RegExp(`^<!-- baton:${name}: .* -->$`))
  const read = createPromptFiles({ root: REPOSITORY }).read(name)
  expect(read).toEqual({ kind: "text", path: `prompts/${name}.md`, text: rest.join("\n") })
  expect(rest[0]).toMatch(/^# /)
})

test(promised("compaction.C10", "a prompt with a task line is a role prompt, and every role has one"), () => {
  const names = readdirSync(join(REPOSITORY, "prompts")).map((file) => file.replace(/\.md$/, ""))
  expect(names.filter((name) => prompt(name).includes("\nTask:")).toSorted()).toEqual(ROLES.toSorted())
  expect(existsSync(join(REPOSITORY, PLUGIN))).toBe(true)
})
