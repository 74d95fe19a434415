import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { tool } from "@opencode-ai/plugin/tool"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { policyPartSchema } from "../../../.opencode/baton/pass-over/contract.ts"
import {
  BUILT_IN_POLICY,
  type PolicyKey,
  type PolicyPart,
  parsePolicy,
  policyFileSchema,
  readPolicy,
} from "../../../.opencode/baton/pass-over/policy/policy.ts"
import { type ResolutionInput, renderPolicy, resolvePolicy } from "../../../.opencode/baton/pass-over/policy/resolve.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { forAll } from "../../support/for-all.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"

type Parts = {
  defaults?: PolicyPart
  pair?: PolicyPart
  subagent?: PolicyPart
  override?: PolicyPart
  inherited?: ResolutionInput["inherited"]
}

const resolve = ({ defaults = {}, pair, subagent, override, inherited }: Parts) =>
  resolvePolicy({
    file: { defaults, pairs: pair ? { "alice->audit": pair } : {}, subagents: subagent ? { audit: subagent } : {} },
    originator: "alice",
    subagent: "audit",
    override,
    inherited,
  })

const resolved = (parts: Parts) => {
  const resolution = resolve(parts)
  if (resolution.kind === "refused") throw new Error(resolution.error.message)
  return resolution.policy
}

describe("a policy", () => {
  test.each<[string, Parts, string, number]>([
    ["nobody", {}, "built-in", BUILT_IN_POLICY.timeout_ms],
    ["the defaults", { defaults: { timeout_ms: 1 } }, "global", 1],
    ["the subagent", { defaults: { timeout_ms: 1 }, subagent: { timeout_ms: 2 } }, "subagent", 2],
    ["the pair", { defaults: { timeout_ms: 1 }, subagent: { timeout_ms: 2 }, pair: { timeout_ms: 3 } }, "pair", 3],
    ["the override", { subagent: { timeout_ms: 3 }, override: { timeout_ms: 2 } }, "override", 2],
  ])(
    promised("pass-over.C1", "a policy takes a value from %s when nobody before has one"),
    (_who, parts, level, value) => {
      const { values, levels } = resolved(parts)
      expect([values.timeout_ms, levels.timeout_ms]).toEqual([value, level])
      expect(levels.auto_apply).toBe("built-in")
    },
  )

  test(
    promised("pass-over.C1", "a policy resolves each key for itself and names the most specific level with a say"),
    () => {
      const policy = resolved({ defaults: { cache: true }, pair: { auto_return: true }, override: { max_retries: 0 } })
      expect(policy.values).toEqual({ ...BUILT_IN_POLICY, cache: true, auto_return: true, max_retries: 0 })
      expect(policy.levels).toMatchObject({ cache: "global", auto_return: "pair", max_retries: "override" })
      expect(policy.name).toBe("pair alice->audit with override")
      expect(resolved({ subagent: { cache: true } }).name).toBe("subagent audit")
      expect(resolved({ defaults: { cache: true } }).name).toBe("defaults")
      expect(resolved({}).name).toBe("built-in")
    },
  )

  test.each([
    [["*->*"], "pair *->*"],
    [["*->*", "*->audit"], "pair *->audit"],
    [["*->*", "*->audit", "alice->*"], "pair alice->*"],
    [["*->*", "*->audit", "alice->*", "alice->audit"], "pair alice->audit"],
    [["bob->*", "*->scout"], "built-in"],
  ])(promised("pass-over.C5", "of a policy's pairs with * the closest holds: %j"), (names, name) => {
    const pairs = Object.fromEntries(names.map((pair) => [pair, { can_modify_files: false }]))
    const file = { defaults: {}, pairs, subagents: {} }
    const policy = resolvePolicy({ file, originator: "alice", subagent: "audit" })
    expect(policy).toMatchObject({ policy: { name, values: { can_modify_files: name === "built-in" } } })
  })

  test(promised("pass-over.C1", "a policy for names that every object has is only what the file says"), () => {
    for (const subagent of ["constructor", "__proto__", "toString"]) {
      const file = { defaults: {}, pairs: {}, subagents: {} }
      expect(resolvePolicy({ file, originator: "a", subagent })).toMatchObject({ policy: { values: BUILT_IN_POLICY } })
    }
  })
})

test(promised("pass-over.C1", "a policy is shown with the level that each value came from"), () => {
  const policy = resolved({
    pair: { auto_return: true, can_modify_files: true },
    override: { timeout_ms: 60_000 },
    inherited: { can_modify_files: false, can_run_tools: true },
  })
  expect(renderPolicy(policy).split("\n")).toEqual([
    "Policy: pair alice->audit with override",
    "- originator: can_modify_files false",
    "- override: timeout_ms 60000",
    "- pair: auto_return true",
    expect.stringMatching(/^- built-in: auto_apply false, on_timeout continue, max_chain_depth 3, .*50000$/),
  ])
})

describe("an override", () => {
  test.each<Parts>([
    { subagent: { can_modify_files: false }, override: { can_modify_files: true } },
    { defaults: { can_modify_files: false }, override: { can_modify_files: true } },
    { pair: { can_run_tools: false }, override: { can_run_tools: true } },
    { override: { max_chain_depth: 4 } },
    { subagent: { max_time_ms: 5000 }, override: { max_time_ms: 6000 } },
    { pair: { on_timeout: "stop" }, override: { on_timeout: "continue" } },
    { pair: { auto_apply: false }, override: { auto_apply: true } },
    { override: { max_context_tokens: 50_001 } },
    { override: { max_retries: 4 } },
    { defaults: { auto_return: false }, override: { auto_return: true } },
    { defaults: { auto_apply: false }, override: { auto_apply: true } },
    { defaults: { on_timeout: "stop" }, override: { on_timeout: "continue" } },
  ])(promised(["pass-over.C2", "pass-over.C6"], "an override cannot widen: %j"), (parts) => {
    const [key = ""] = Object.keys(parts.override ?? {})
    const next_step = `Pass again without ${key} in the override.`
    const error = { code: "E030", message: expect.stringContaining(key), next_step }
    expect(resolve(parts)).toMatchObject({ kind: "refused", error })
  })

  test.each<[Parts, string]>([
    [{ pair: { timeout_ms: 5000 } }, "pair alice->audit"],
    [{ defaults: { timeout_ms: 5000 } }, "defaults"],
  ])(
    promised("passes.A5", "an override of timeout_ms is reduced to what the file has, and said: %j"),
    (parts, name) => {
      const answer = resolve({ ...parts, override: { timeout_ms: 6000, max_retries: 1 } })
      const note = `The override timeout_ms: 6000 was reduced to 5000, which .opencode/pass-over.json has (${name}).`
      expect(answer).toMatchObject({ kind: "resolved", policy: { values: { timeout_ms: 5000, max_retries: 1 } }, note })
      const refused = resolve({ ...parts, override: { timeout_ms: 6000, max_chain_depth: 9 } })
      expect(refused).toMatchObject({
        kind: "refused",
        error: { code: "E030", message: expect.stringContaining("max_chain_depth") },
      })
      expect(resolve({ ...parts, override: { timeout_ms: 4000 } })).not.toHaveProperty("note")
    },
  )

  test.each<Parts>([
    { override: { timeout_ms: 60_000_000, auto_return: true, auto_apply: true } },
    { override: { can_modify_files: false, can_run_tools: false, max_chain_depth: 1, max_time_ms: 1000 } },
    { subagent: { can_modify_files: false }, pair: { can_modify_files: true }, override: { can_modify_files: true } },
    { pair: { on_timeout: "continue" }, override: { on_timeout: "stop" } },
    { pair: { cache: false }, override: { cache: true, notify_on_return: "never" } },
    { override: { retry_delay_ms: 5, backoff_multiplier: 3 } },
  ])(promised("pass-over.C1", "an override may say: %j"), (parts) => {
    expect(resolved(parts).values).toMatchObject(parts.override ?? {})
  })

  test(promised("pass-over.C2", "an override never makes a right or a limit wider than it is without it"), () => {
    const part: fc.Arbitrary<PolicyPart> = fc.record(
      {
        can_modify_files: fc.boolean(),
        can_run_tools: fc.boolean(),
        can_receive_passes: fc.boolean(),
        max_chain_depth: fc.integer({ min: 1, max: 6 }),
        max_time_ms: fc.integer({ min: 1000, max: 4_000_000 }),
      },
      { requiredKeys: [] },
    )
    forAll(100, [part, part, part, part], (defaults, pair, subagent, override) => {
      const without = resolved({ defaults, pair, subagent })
      const answer = resolve({ defaults, pair, subagent, override })
      const keys = Object.keys(override) as PolicyKey[]
      // A run without a result is drawn again; fast-check fails if there are too many.
      fc.pre(answer.kind !== "refused" && keys.length > 0)
      for (const key of keys) {
        expect(Number(answer.policy.values[key])).toBeLessThanOrEqual(Number(without.values[key]))
        expect(answer.policy.levels[key]).toBe("override")
      }
    })
  })
})

test(promised("pass-over.C1", "what the originator may not do, its subagent may not either, whatever is said"), () => {
  const { values, levels } = resolved({
    pair: { can_modify_files: true },
    subagent: { can_run_tools: false },
    inherited: { can_modify_files: false, can_run_tools: false },
  })
  expect(values).toMatchObject({ can_modify_files: false, can_run_tools: false })
  expect(levels).toMatchObject({ can_modify_files: "originator", can_run_tools: "subagent" })
  const bound = { can_modify_files: true, can_run_tools: true, sandbox: "os" } as const
  expect(resolved({ inherited: bound })).toMatchObject({ values: { sandbox: "os" }, levels: { sandbox: "originator" } })
  expect(resolved({ inherited: { can_modify_files: true, can_run_tools: true } }).levels.can_modify_files).toBe(
    "built-in",
  )
})

const z = tool.schema

const project = (): { root: string; path: string } => {
  const root = temporaryFolder()
  mkdirSync(join(root, ".opencode", "baton"), { recursive: true })
  return { root, path: join(root, ".opencode", "pass-over.json") }
}

describe("the policy file", () => {
  test(promised("pass-over.C1", "the policy file is published as the JSON schema that it is read with"), async () => {
    const schema = z.toJSONSchema(policyFileSchema(z), { io: "input" })
    await expect(`${JSON.stringify(schema, null, 2)}\n`).toMatchFileSnapshot(
      "../../../.opencode/baton/pass-over/policy/policy.schema.json",
    )
  })

  test(
    promised("pass-over.A11", "the policy file that is installed is a policy, and names the schema beside it"),
    () => {
      const text = readFileSync(join(REPOSITORY, ".opencode", "pass-over.json"), "utf8")
      expect(parsePolicy(z, text)).toEqual(parsePolicy(z, "{}"))
      expect(existsSync(join(REPOSITORY, ".opencode", JSON.parse(text).$schema))).toBe(true)
    },
  )

  test(promised("pass-over.C1", "the policy file may be the document's example, and need hold nothing at all"), () => {
    const example = {
      defaults: { auto_return: false, auto_apply: false, timeout_ms: 30_000, max_chain_depth: 3 },
      pairs: { "alice->audit": { auto_return: true, auto_apply: false, notify_on_return: "always" } },
    }
    expect(parsePolicy(z, JSON.stringify(example))).toEqual({
      kind: "policy",
      isMissing: false,
      file: { ...example, subagents: {}, audit_log: { enabled: true, retention_days: 90 } },
    })
    expect(parsePolicy(z, "\uFEFF{}")).toMatchObject({ file: { defaults: {}, pairs: {}, subagents: {} } })
  })

  test(
    promised("pass-over.C1", "the policy file may set every key that has a built-in value, and these values are valid"),
    () => {
      expect(Object.keys(policyPartSchema(z).shape).sort()).toEqual(Object.keys(BUILT_IN_POLICY).sort())
      expect(policyPartSchema(z).parse(BUILT_IN_POLICY)).toEqual(BUILT_IN_POLICY)
    },
  )

  test.each([
    ['{"pairs": {\n"alice->audit": {\n"cache": "no"\n}}}', 3, /^pairs\."alice->audit"\.cache: .* boolean, .* "no"$/],
    ['{\n  "defaults": {},\n  "subagent": {}\n}', 3, /^subagent: Unrecognized key: "subagent"/],
    ['{"defaults": {\n"max_chain_depht": 2}}', 2, /^defaults\.max_chain_depht: Unrecognized key/],
    ['{\n"pairs": {\n"alice": {}}}', 3, /^pairs\.alice: .*originator->subagent/],
    ['{\n"pairs": {\n"alice -> audit": {}}}', 3, /originator->subagent/],
    ['{\n"subagents": {\n"audit": {"timeout_ms": 5}}}', 3, /^subagents\.audit\.timeout_ms: .*>=1000, received 5$/],
    ['{"audit_log":\n{"retention_days": 0}}', 2, /^audit_log\.retention_days: /],
    ["[]", 1, /expected object, received array/],
    ["null", 1, /expected object/],
  ])(promised("pass-over.C2", "%j is refused on line %i with what was expected"), (text, line, cause) => {
    const message = `.opencode/pass-over.json:${line} is not a policy, so that nothing is passed`
    const error = { code: "E030", message, cause: expect.stringMatching(cause) }
    expect(parsePolicy(z, text)).toMatchObject({ kind: "unusable", error })
  })

  test.each(["", "{", '{"defaults": {"cache": true,}}', "{}\n// more"])(
    promised("pass-over.C2", "%j is refused as no JSON"),
    (text) => expect(parsePolicy(z, text)).toMatchObject({ kind: "unusable", error: { code: "E030" } }),
  )

  test(
    promised("pass-over.C2", "the policy file is read anew each time, its absence told from what cannot be read"),
    async () => {
      const { root, path } = project()
      expect(await readPolicy(root)).toEqual({ ...parsePolicy(z, "{}"), isMissing: true })
      writeFileSync(path, '{"defaults":{"max_chain_depth":1}}')
      expect(await readPolicy(root)).toMatchObject({ isMissing: false, file: { defaults: { max_chain_depth: 1 } } })
      writeFileSync(path, "{")
      expect(await readPolicy(root)).toMatchObject({ kind: "unusable", error: { code: "E030" } })
    },
  )

  test(
    promised("pass-over.C2", "a folder in place of the policy file and a link that leads nowhere are no permission"),
    async () => {
      const [folder, link] = [project(), project()]
      mkdirSync(folder.path)
      symlinkSync(join(link.root, "gone.json"), link.path)
      for (const { root } of [folder, link])
        expect(await readPolicy(root)).toMatchObject({ kind: "unusable", error: { code: "E030" } })
    },
  )
})
