import { expect, test } from "vitest"
import { comparableRequest, estimateTokens, requestCharacters } from "../support/request-size.ts"

const tools = [{ type: "function" as const, function: { name: "bash", description: "Runs.", parameters: {} } }]
const body = {
  model: "model",
  messages: [
    { role: "system" as const, content: "1234" },
    { role: "user" as const, content: [{ type: "text", text: "123" }] },
    { role: "assistant" as const, content: null },
  ],
  tools,
}

test("counts what the model reads: texts, and each tool as JSON", () => {
  expect(requestCharacters({ body })).toBe(7 + JSON.stringify(tools[0]).length)
  const { tools: _tools, ...silent } = body
  expect(requestCharacters({ body: silent })).toBe(7)
  expect(estimateTokens(10)).toBe(3)
})

test("requests of two runs are equal when they differ in ids and folders alone", () => {
  const project = (name: string) => ({ directory: `/${name}/project`, home: `/${name}/home` })
  const said = (text: string) => ({ body: { ...body, messages: [{ role: "user" as const, content: text }] } })
  const first = comparableRequest(said("ses_1a ts-0123ab in /a/project with /a/home, call_9"), project("a"))
  expect(comparableRequest(said("ses_2b ts-ffffff in /b/project with /b/home, call_10"), project("b"))).toBe(first)
  expect(comparableRequest(said("ses_2b ts-ffffff in /b/project with /b/home, call_10 "), project("b"))).not.toBe(first)
})
