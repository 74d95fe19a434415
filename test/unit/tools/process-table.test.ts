import { expect, test } from "vitest"
import { parseProcessRows, readProcesses } from "../../support/files/process-table.ts"

test("reads the rows of ps, with arguments of any shape", () => {
  const rows = "    1     0 /sbin/init splash\n  412     1 sh -c a  b tag-1\n99999   412 \nnot a row\n"
  expect(parseProcessRows(rows)).toEqual([
    { pid: 1, parent: 0, args: "/sbin/init splash" },
    { pid: 412, parent: 1, args: "sh -c a  b tag-1" },
    { pid: 99_999, parent: 412, args: "" },
  ])
})

test("finds this very process with its parent, through /proc and through ps", async () => {
  const own = { pid: process.pid, parent: process.ppid }
  expect(await readProcesses(process.platform)).toContainEqual(expect.objectContaining(own))
  expect(await readProcesses("darwin")).toContainEqual(expect.objectContaining(own))
})
