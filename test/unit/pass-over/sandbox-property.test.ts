import { existsSync, readdirSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"
import {
  createPassProject,
  projectTree,
  readIn,
  storedText,
  succeed,
  writeFiles,
} from "../../support/opencode/pass-project.ts"
import { idOf } from "../../support/opencode/pass-sandboxes.ts"

const PATHS = ["a", "b", "d/a", "d/b", "d/e/a", "f"] as const
const START = { a: "1\n2\n3\n4\n5\n", b: "b\n", "d/a": "1\n2\n3\n4\n5\n", "d/e/a": "deep\n" }

const edit = fc.record({
  path: fc.constantFrom(...PATHS),
  /** null deletes the file. */
  content: fc.oneof(
    fc.constantFrom(null, "", "x\n2\n3\n4\n5\n", "1\n2\n3\n4\ny\n", "b\n", "deep\n"),
    fc.string({ maxLength: 5 }),
  ),
})
type Edit = { path: string; content: string | null }

const doEdits = (root: string, edits: readonly Edit[]): void => {
  for (const { path, content } of edits) {
    const place = join(root, path)
    if (content === null) rmSync(place, { force: true })
    else writeFiles(root, { [path]: content })
  }
}

const contents = (root: string): Record<string, string> =>
  Object.fromEntries(PATHS.filter((path) => existsSync(join(root, path))).map((path) => [path, readIn(root, path)]))

test(promised(["pass-over.B2", "pass-over.B3"], "whatever is done, only what was applied changes"), async () => {
  const project = createPassProject({ files: { ...START, "untouched/x": "x" } })
  const { root, begin, passes } = project
  let count = 0
  const round = fc.record({
    before: fc.array(edit, { maxLength: 3 }),
    child: fc.array(edit, { maxLength: 5 }),
    meanwhile: fc.array(edit, { maxLength: 3 }),
    allOrNothing: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(round, async ({ before, child, meanwhile, allOrNothing }) => {
      count += 1
      const passID = `p${count}`
      doEdits(root, before)
      const base = contents(root)
      const { sandbox } = await begin(passID)
      expect(contents(sandbox)).toEqual(base)
      doEdits(sandbox, child)
      const wanted = contents(sandbox)
      doEdits(root, meanwhile)
      const theirs = contents(root)
      const tree = projectTree(root)
      const { modifications } = succeed(await passes.collect(passID))
      expect(projectTree(root)).toEqual(tree)

      // The stored changes are exactly the difference between the child's first and last state.
      const rebuilt = { ...base }
      for (const { previous_path, path, new_hash } of modifications) {
        if (previous_path !== undefined) delete rebuilt[previous_path]
        const content = storedText(root, passID, new_hash)
        if (content === null) delete rebuilt[path]
        else rebuilt[path] = content
      }
      expect(rebuilt).toEqual(wanted)

      const applied = succeed(await passes.apply(passID, { allOrNothing }))
      const now = contents(root)
      const done = applied.files.filter(({ outcome }) => ["applied", "already-applied"].includes(outcome))
      const concerned = new Set<string>()
      for (const { path } of done) {
        const { previous_path } = modifications.find((each) => each.path === path) ?? {}
        concerned.add(path)
        if (previous_path !== undefined) concerned.add(previous_path)
        expect(now[path]).toBe(wanted[path])
      }
      if (allOrNothing && !applied.complete) expect(projectTree(root)).toEqual(tree)
      for (const path of PATHS) if (!concerned.has(path)) expect(now[path], path).toBe(theirs[path])
      // No file of the bundle is left, such as a temporary one; the rest of the project and git are unchanged.
      const others = Object.entries(projectTree(root)).filter(
        ([path]) => !PATHS.some((each) => each === path || each.startsWith(`${path}/`)),
      )
      expect(Object.fromEntries(others)).toEqual(
        Object.fromEntries(Object.entries(tree).filter(([path]) => others.some(([each]) => each === path))),
      )
      expect(others.map(([path]) => path).filter((path) => path.endsWith(".tmp"))).toEqual([])
      if (applied.held > 0) succeed(await passes.reject(passID))
      expect(readdirSync(join(root, ".opencode/state/pass-over", idOf(passID)))).toEqual(["files", "pass.json"])
      expect(statSync(join(root, "untouched/x")).isFile()).toBe(true)
    }),
    { numRuns: runs(8) },
  )
}, 120_000)
