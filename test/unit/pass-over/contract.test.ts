import { tool } from "@opencode-ai/plugin/tool"
import { describe, expect, test } from "vitest"
import { argumentSchemas, contractSchemas } from "../../../.opencode/baton/pass-over/contract.ts"
import { ERRORS, type ErrorCode, passOverError, renderError } from "../../../.opencode/baton/pass-over/errors.ts"
import { createTools } from "../../../.opencode/baton/pass-over/tools.ts"
import { promised } from "../../requirements.ts"

const z = tool.schema
const schemas = contractSchemas(z)

test(promised("pass-over.A1", "the contract is published as the JSON schema that all is checked with"), async () => {
  const published = {
    PassOverRequest: schemas.request,
    WorkContext: schemas.workContext,
    WorkOutput: schemas.output,
    Artifact: schemas.artifact,
    PassOverMetadata: schemas.metadata,
    PassOverError: schemas.error,
    ReturnArguments: schemas.returnArguments,
  }
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(published)) registry.add(schema, { id })
  const { schemas: types } = z.toJSONSchema(registry, { io: "input", uri: (id) => `#/$defs/${id}` })
  const $defs = Object.fromEntries(
    Object.entries(types).map(([id, { $schema: _schema, $id: _id, ...type }]) => [id, type]),
  )
  const document = { $schema: "https://json-schema.org/draft/2020-12/schema", $defs }
  await expect(`${JSON.stringify(document, null, 2)}\n`).toMatchFileSnapshot("../../../docs/pass-over.schema.json")
})

const NOT_OFFERED = new Set([
  "$schema",
  "description",
  "default",
  "minLength",
  "maxLength",
  "minimum",
  "maximum",
  "minItems",
  "maxItems",
])

/** A schema's fields and their types: an answer tells the model the limits. */
const typesOf = (schema: unknown): unknown =>
  JSON.parse(JSON.stringify(schema, (key, value) => (NOT_OFFERED.has(key) ? undefined : value)))

test(promised("pass-over.A2", "the tools offer the fields that their arguments are checked with"), () => {
  const tools = createTools({ load: () => Promise.reject(new Error("loaded")) })
  const { pass_over, ...decisions } = argumentSchemas(z)
  const checked = {
    ...decisions,
    pass_over_return: schemas.returnArguments,
    // The keys of a policy would be in every request.
    pass_over: pass_over.extend({ override: z.looseObject({}).optional() }),
  }
  expect(Object.keys(checked).sort()).toEqual(Object.keys(tools).sort())
  for (const [name, schema] of Object.entries(checked)) {
    const offered = z.toJSONSchema(z.strictObject(tools[name]?.args ?? {}), { io: "input" })
    expect(typesOf(offered), name).toEqual(typesOf(z.toJSONSchema(schema, { io: "input" })))
  }
})

describe("the errors", () => {
  const codes = Object.keys(ERRORS) as ErrorCode[]

  test.each(codes)(promised("pass-over.E1", "%s says what failed, why, and what to do now"), (code) => {
    const { name, recoverable, next_step } = ERRORS[code]
    const error = passOverError(code, { message: "It failed", cause: "This was found" })
    expect(error).toEqual({ code, name, recoverable, message: "It failed", cause: "This was found", next_step })
    expect(schemas.error.parse(error)).toEqual(error)
    expect(renderError(error)).toBe(`${code} ${name}: It failed\nCause: This was found\nNext: ${next_step}`)
    expect(next_step).toMatch(/^[A-Z].*\.$/)
  })

  test(promised("pass-over.E1", "a better next step stands in for the usual one, and no cause for none"), () => {
    const error = passOverError("E011", { message: "m", cause: "", nextStep: "Wait." })
    expect(renderError(error)).toBe("E011 SUBAGENT_CRASHED: m\nNext: Wait.")
  })

  test(promised("pass-over.E1", "no two codes share a name"), () => {
    expect(new Set(codes.map((code) => ERRORS[code].name)).size).toBe(codes.length)
  })
})
