import { readFileSync } from "node:fs"
import { join } from "node:path"
import { tool } from "@opencode-ai/plugin/tool"
import { describe, expect, test } from "vitest"
import { ERRORS } from "../../.opencode/baton/pass-over/errors.ts"
import {
  BUILT_IN_POLICY,
  type PolicyKey,
  type PolicyPart,
  parsePolicy,
} from "../../.opencode/baton/pass-over/policy/policy.ts"
import { resolvePolicy } from "../../.opencode/baton/pass-over/policy/resolve.ts"
import { promised } from "../requirements.ts"
import { REPOSITORY } from "../support/opencode/opencode-binary.ts"

const page = readFileSync(join(REPOSITORY, "docs", "pass-over-reference.md"), "utf8")

/** Rows of the table under a heading, without their first two lines. */
const rowsUnder = (heading: string): string[] => {
  const section = page.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? ""
  return section.split("\n").filter((line) => /^\| (?:`|E\d)/.test(line))
}

const WIDE_AND_NARROW: Partial<Record<PolicyKey, readonly string[]>> = {
  sandbox: ["copy", "os"],
  on_timeout: ["continue", "stop"],
  notify_on_return: ["always", "never"],
}

/** The page's words for what an override may do, found by trying. */
const overrideMay = (key: PolicyKey): string => {
  const value = BUILT_IN_POLICY[key]
  const [wide, narrow] = typeof value === "number" ? [value, value - 1] : (WIDE_AND_NARROW[key] ?? [true, false])
  const resolve = (defaults: PolicyPart, said: unknown) => {
    const file = { defaults, pairs: {}, subagents: {} }
    return resolvePolicy({ file, originator: "a", subagent: "b", override: { [key]: said } })
  }
  const isRefused = (defaults: PolicyPart, said: unknown): boolean => resolve(defaults, said).kind === "refused"
  if (typeof value === "number" && isRefused({}, value + 1)) return "only less"
  const beyond = resolve({ [key]: narrow }, wide)
  if (beyond.kind === "resolved") return beyond.policy.values[key] === narrow ? "reduced to the file's" : "free"
  return key.startsWith("can_") ? "only less" : "no further than the file"
}

describe("the reference of passes", () => {
  test(
    promised(["pass-over.G4", "pass-over.E1"], "the reference of passes has every error as the program has it"),
    () => {
      const rows = Object.entries(ERRORS).map(([code, { name, recoverable, meaning }]) =>
        ["", code, `\`${name}\``, recoverable ? "yes" : "no", meaning, ""].join(" | ").trim(),
      )
      expect(rowsUnder("Errors")).toEqual(rows)
    },
  )

  test(
    promised(
      ["pass-over.G4", "pass-over.C1"],
      "the reference of passes has every key, value and what an override may do",
    ),
    () => {
      const keys = Object.keys(BUILT_IN_POLICY) as PolicyKey[]
      expect(rowsUnder("Policy")).toEqual(
        keys.map((key) => `| \`${key}\` | \`${JSON.stringify(BUILT_IN_POLICY[key])}\` | ${overrideMay(key)} |`),
      )
    },
  )

  test(promised(["pass-over.G4", "pass-over.C1"], "the reference of passes shows a policy that is one"), () => {
    const [, example = ""] = page.split("```json\n")
    expect(parsePolicy(tool.schema, example.split("```")[0] ?? "").kind).toBe("policy")
  })
})
