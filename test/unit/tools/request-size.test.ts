import { expect, test } from "vitest"
import { comparableRequest } from "../../support/model/request-size.ts"

test("requests of two runs are equal when they differ in ids and folders alone", () => {
  const project = (name: string) => ({ directory: `/${name}/project`, home: `/${name}/home` })
  const said = (content: string) => ({ body: { model: "model", messages: [{ role: "user" as const, content }] } })
  const first = comparableRequest(said("ses_1a ts-0123ab in /a/project with /a/home, call_9"), project("a"))
  expect(comparableRequest(said("ses_2b ts-ffffff in /b/project with /b/home, call_10"), project("b"))).toBe(first)
  expect(comparableRequest(said("ses_2b ts-ffffff in /b/project with /b/home, call_10 "), project("b"))).not.toBe(first)
})
