import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { parseRole, parseTask, type Role } from "../../../.opencode/baton/task/parse.ts"
import { promised } from "../../requirements.ts"

const CASES: readonly (readonly [why: string, text: string, role: Role | undefined])[] = [
  ["the heading", "# Planner\n\nTask: ts-b54507", "planner"],
  ["the other heading", "# Worker\n\nTask: ts-b54507", "worker"],
  ["a heading below the task", "Task: ts-b54507\n\n# Planner\n", "planner"],
  ["the quotes of opencode run", '"# Planner\n\nTask: ts-b54507"', "planner"],
  ["the quotes of opencode run around the heading alone", '"# Planner"\nTask: ts-b54507', "planner"],
  ["a byte order mark", "\uFEFF# Planner\nTask: ts-b54507", "planner"],
  ["CRLF", "# Planner\r\n\r\nTask: ts-b54507\r\n", "planner"],
  ["the word agent", "# Planner Agent\n", "planner"],
  ["a closed heading", "# Planner #\n", "planner"],
  ["the first of two headings", "# Planner\n\n# Worker\n", "planner"],
  ["the first of two headings, the other way round", "# Worker\n\n# Planner\n", "worker"],
  ["a heading after a fence", "```\nTask: ts-b54507\n```\n# Planner", "planner"],
  ["a heading after a longer fence", "````\n```\n# Worker\n````\n# Planner", "planner"],
  ["a heading after code in a line", "```x``` is code\n# Planner", "planner"],
  ["no heading", "Task: ts-b54507", undefined],
  ["a second-level heading", "## Planner\n", undefined],
  ["no blank after the mark", "#Planner\n", undefined],
  ["another case", "# planner\n", undefined],
  ["the title of a document", "# Planner for the release\n", undefined],
  ["a longer word", "# Planners\n", undefined],
  ["a heading within a line", "see # Planner\n", undefined],
  ["a quoted heading", "> # Planner\n", undefined],
  ["an indented heading", "  # Planner\n", undefined],
  ["a fenced heading", "```\n# Planner\n```\n", undefined],
  ["a heading fenced by tildes", "~~~md\n# Planner\n~~~\n", undefined],
  ["a fence with an info string does not close", "```\n```js\n# Planner\n", undefined],
  ["a shorter fence does not close", "````\n```\n# Planner\n", undefined],
  ["another fence does not close", "~~~\n```\n# Planner\n", undefined],
]

describe("the role heading", () => {
  test.each(CASES)(promised("task.B1", "reads the role from %s"), (_why, text, role) => {
    expect(parseRole(text)).toBe(role)
  })

  test(promised("task.B1", "gives task and role together, and no role without a task"), () => {
    const planner = { taskID: "ep-82985b", role: "planner", hasRoleHeading: true }
    expect(parseTask("# Planner\n\n```\nTask: EP-82985B\n```")).toEqual(planner)
    expect(parseTask("Task: ts-b54507")).toEqual({ taskID: "ts-b54507", role: "worker", hasRoleHeading: false })
    expect(parseTask("# Planner\n")).toBeUndefined()
  })

  test(promised("task.B1", "ignores a heading in a fence of any length and mark"), () => {
    const fence = fc
      .tuple(fc.constantFrom("`", "~"), fc.integer({ min: 3, max: 9 }))
      .map(([mark, length]) => mark.repeat(length))
    fc.assert(
      fc.property(fence, (mark) => {
        expect(parseRole(`${mark}\n# Planner\n${mark}\n`)).toBeUndefined()
        expect(parseRole(`${mark}\n${mark}\n# Planner`)).toBe("planner")
      }),
    )
  })
})
