import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { tool } from "@opencode-ai/plugin/tool"
import { describe, expect, test } from "vitest"
import {
  BUILT_IN_POLICY,
  parsePolicy,
  policyFileSchema,
  policyPartSchema,
  readPolicy,
} from "../../../.opencode/baton/pass-over/policy/policy.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/temporary-folder.ts"

const z = tool.schema

/** The example in the documentation. */
const DOCUMENT = `{
  "defaults": {
    "auto_return": false,
    "auto_apply": false,
    "timeout_ms": 30000,
    "max_chain_depth": 3
  },
  "pairs": {
    "alice->audit": {
      "auto_return": true,
      "auto_apply": false,
      "notify_on_return": "always"
    }
  }
}
`

const refusal = (text: string) => {
  const read = parsePolicy(z, text)
  if (read.kind === "policy") throw new Error(`expected a refusal of ${text}`)
  return read.error
}

const project = (): { root: string; path: string } => {
  const root = temporaryFolder()
  mkdirSync(join(root, ".opencode"))
  return { root, path: join(root, ".opencode", "pass-over.json") }
}

describe("the policy file", () => {
  test(promised("pass-over.C1", "is published as the JSON schema that it is read with"), async () => {
    const schema = z.toJSONSchema(policyFileSchema(z), { io: "input" })
    await expect(`${JSON.stringify(schema, null, 2)}\n`).toMatchFileSnapshot(
      "../../../docs/pass-over-policy.schema.json",
    )
  })

  test(promised("pass-over.C1", "may be the document's example, and need hold nothing at all"), () => {
    expect(parsePolicy(z, DOCUMENT)).toEqual({
      kind: "policy",
      isAbsent: false,
      file: {
        defaults: { auto_return: false, auto_apply: false, timeout_ms: 30_000, max_chain_depth: 3 },
        pairs: { "alice->audit": { auto_return: true, auto_apply: false, notify_on_return: "always" } },
        subagents: {},
        audit: { enabled: true, retention_days: 90 },
      },
    })
    expect(parsePolicy(z, "\uFEFF{}")).toMatchObject({ file: { defaults: {}, pairs: {}, subagents: {} } })
  })

  test(
    promised("pass-over.C1", "may set every key that there is a built-in value for, and the built-in values are valid"),
    () => {
      expect(Object.keys(policyPartSchema(z).shape).sort()).toEqual(Object.keys(BUILT_IN_POLICY).sort())
      expect(policyPartSchema(z).parse(BUILT_IN_POLICY)).toEqual(BUILT_IN_POLICY)
    },
  )

  test.each([
    [
      '{\n  "pairs": {\n    "alice->audit": {\n      "can_modify_files": "no"\n    }\n  }\n}',
      4,
      /^pairs\."alice->audit"\.can_modify_files: .*expected boolean, received string, received "no"$/,
    ],
    ['{\n  "defaults": {},\n  "subagent": {}\n}', 3, /^subagent: Unrecognized key: "subagent"/],
    ['{"defaults": {\n"max_chain_depht": 2}}', 2, /^defaults\.max_chain_depht: Unrecognized key/],
    ['{\n"pairs": {\n"alice": {}}}', 3, /^pairs\.alice: .*originator->subagent/],
    ['{\n"pairs": {\n"alice -> audit": {}}}', 3, /originator->subagent/],
    ['{\n"subagents": {\n"audit": {"timeout_ms": 5}}}', 3, /^subagents\.audit\.timeout_ms: .*>=1000, received 5$/],
    ['{"audit":\n{"retention_days": 0}}', 2, /^audit\.retention_days: /],
    ['{"defaults": {"cache": true,}}', 1, /expected a key in double quotes, received "}}"/],
    ['{"subagents": {\n"audit": {"can_modify_files": false},\n"audit": {}}}', 3, /the key "audit" is there twice/],
    ["[]", 1, /expected object, received array/],
    ["", 1, /the end of the file/],
    ["null", 1, /expected object/],
  ])(promised("pass-over.C2", "%j is refused on line %i with what was expected"), (text, line, cause) => {
    const error = refusal(text)
    expect(error).toMatchObject({ code: "E030", cause: expect.stringMatching(cause) })
    expect(error.message).toBe(`.opencode/pass-over.json:${line} is not a policy, so that nothing is passed`)
  })

  test(
    promised("pass-over.C2", "is read anew each time, and its absence is told from a file that cannot be read"),
    async () => {
      const { root, path } = project()
      expect(await readPolicy(root)).toEqual({ ...parsePolicy(z, "{}"), isAbsent: true })
      writeFileSync(path, '{"defaults":{"max_chain_depth":1}}')
      expect(await readPolicy(root)).toMatchObject({ isAbsent: false, file: { defaults: { max_chain_depth: 1 } } })
      writeFileSync(path, "{")
      expect(await readPolicy(root)).toMatchObject({ kind: "unusable", error: { code: "E030" } })
    },
  )

  test(promised("pass-over.C2", "a folder in its place and a link that leads nowhere are no permission"), async () => {
    const [folder, link] = [project(), project()]
    mkdirSync(folder.path)
    symlinkSync(join(link.root, "gone.json"), link.path)
    for (const { root } of [folder, link])
      expect(await readPolicy(root)).toMatchObject({ kind: "unusable", error: { code: "E030" } })
  })
})
