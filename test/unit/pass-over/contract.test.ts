import { tool } from "@opencode-ai/plugin/tool"
import { describe, expect, test } from "vitest"
import { contractSchemas } from "../../../.opencode/baton/pass-over/contract.ts"
import { promised } from "../../requirements.ts"

const z = tool.schema
const schemas = contractSchemas(z)

const PUBLISHED = {
  PassOverRequest: schemas.request,
  WorkContext: schemas.workContext,
  WorkOutput: schemas.output,
  Artifact: schemas.artifact,
  PassOverMetadata: schemas.metadata,
  PassOverError: schemas.error,
  ReturnArguments: schemas.returnArguments,
}

const metadata = {
  chain_depth: 1,
  origination_chain: [{ agent: "build", session_id: "ses_1" }],
  root_session_id: "ses_1",
  created_at: "2026-01-01T00:00:00.000Z",
  completed_at: null,
  policy_name: "built-in",
  attempts: 1,
  cached_from: null,
}

const output = {
  pass_over_id: "pass_20260101000000000_abcd",
  return_to: "build",
  status: "completed",
  child_session_id: "ses_2",
  source: "return",
  summary: { text: "All is well.", decision: "approved", findings: [], recommendations: [] },
  artifacts: [
    {
      type: "file_modification",
      path: "src/a.ts",
      change: "modified",
      old_content: "1\n",
      new_content: "2\n",
      is_binary: false,
      is_large: false,
      old_hash: "aa",
      new_hash: "bb",
      old_mode: "100644",
      new_mode: "100755",
      by: "shell",
    },
    { type: "decision", question: "Which way?", answer: "This one." },
    { type: "finding", severity: "warning", message: "Too slow", path: "src/a.ts", line: 3, end_line: 4, fix: "Cache" },
    { type: "message", text: "Thanks." },
    { type: "tool_result", tool: "bash", title: "ls", status: "completed", exit_code: 0, output: "a", is_cut: false },
  ],
  left_out: [{ path: "app/.git", reason: "its history is not carried" }],
  error: null,
  metadata,
}

describe("the contract", () => {
  test(promised("pass-over.A1", "is published as the JSON schema that everything is checked with"), async () => {
    const registry = z.registry<{ id: string }>()
    for (const [id, schema] of Object.entries(PUBLISHED)) registry.add(schema, { id })
    const { schemas: types } = z.toJSONSchema(registry, { io: "input", uri: (id) => `#/$defs/${id}` })
    const $defs = Object.fromEntries(
      Object.entries(types).map(([id, { $schema: _schema, $id: _id, ...type }]) => [id, type]),
    )
    const document = { $schema: "https://json-schema.org/draft/2020-12/schema", $defs }
    await expect(`${JSON.stringify(document, null, 2)}\n`).toMatchFileSnapshot("../../../docs/pass-over.schema.json")
  })

  test(
    promised("pass-over.A1", "holds an output with every kind of artifact, and nothing that it does not name"),
    () => {
      expect(schemas.output.parse(output)).toEqual(output)
      expect(schemas.output.safeParse({ ...output, status: "done" }).success).toBe(false)
      expect(schemas.output.safeParse({ ...output, extra: 1 }).success).toBe(false)
      expect(schemas.output.safeParse({ ...output, return_to: undefined }).success).toBe(false)
    },
  )
})
