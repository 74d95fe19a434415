import { expect, test } from "vitest"
import { parseProcessRows, readProcesses, selectTagged } from "../../../.opencode/baton/host/process.ts"

test("reads the rows of ps, with arguments of any shape", () => {
  const rows = "    1     0 /sbin/init splash\n  412     1 sh -c a  b tag-1\n99999   412 \nnot a row\n"
  expect(parseProcessRows(rows)).toEqual([
    { pid: 1, parent: 0, args: "/sbin/init splash" },
    { pid: 412, parent: 1, args: "sh -c a  b tag-1" },
    { pid: 99_999, parent: 412, args: "" },
  ])
})

test("selects the tagged processes and all their descendants, and nothing else", () => {
  const processes = [
    { pid: 7, parent: 5, args: "grandchild" },
    { pid: 5, parent: 4, args: "child" },
    { pid: 4, parent: 1, args: "sh -c … tag-1 prog" },
    { pid: 9, parent: 1, args: "sh -c … tag-2 prog" },
    { pid: 1, parent: 0, args: "init" },
  ]
  expect(new Set(selectTagged(processes, "tag-1"))).toEqual(new Set([4, 5, 7]))
  expect(selectTagged(processes, "tag-3")).toEqual([])
})

test("finds this very process with its parent, through /proc and through ps", async () => {
  const own = { pid: process.pid, parent: process.ppid }
  expect(await readProcesses(process.platform)).toContainEqual(expect.objectContaining(own))
  expect(await readProcesses("darwin")).toContainEqual(expect.objectContaining(own))
})
