import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { REPOSITORY } from "../support/opencode/opencode-binary.ts"
import { commandsIn, PAGES } from "../support/page-commands.ts"

const pages = Object.keys(PAGES)
const read = (path: string): string => readFileSync(join(REPOSITORY, path), "utf8")

test.each(pages)(promised("people.D1", "each command of %s is run by a test, and no other is said to be"), (page) => {
  const commands = commandsIn(page)
  expect(commands.length).toBeGreaterThan(5)
  const run = (PAGES[page] ?? []).flatMap(({ command }) => command ?? [])
  expect([...run].sort()).toEqual([...commands].sort())
})

test(promised("people.D1", "a test that is named for a command is there, and runs it"), () => {
  const named = Object.values(PAGES).flatMap((steps) => steps.flatMap(({ by }) => (by ? [by] : [])))
  expect(named.length).toBeGreaterThan(5)
  expect(named.filter(([file, text]) => !read(file).includes(text))).toEqual([])
})
