import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { SILENT } from "../../../.opencode/baton/host/log.ts"
import { createPersonsPasses, forPerson } from "../../../.opencode/baton/pass-over/audit/person.ts"
import { ERRORS } from "../../../.opencode/baton/pass-over/errors.ts"
import { refusals } from "../../../.opencode/baton/pass-over/sandbox/repository.ts"
import { promised } from "../../requirements.ts"
import { openFeaturePasses, speakOn, writing } from "../../support/opencode/feature-passes.ts"
import { readIn } from "../../support/opencode/pass-project.ts"

const ALL = { files: undefined, partly: false }
const ANSWER = {
  status: "completed",
  summary: "It is green.",
  decision: "changes_requested",
  findings: [{ severity: "error", path: "a.txt", line: 1, message: "The b is missing" }],
}

/** A pass that has returned, as a person finds it. */
const openReturned = async () => {
  const passes = openFeaturePasses({ coder: writing({ "a.txt": "b\n", "new.txt": "new\n" }, ANSWER) })
  await passes.pass()
  const id = passes.id()
  const stateOf = () => passes.recordOf(id).state.state
  return { id, root: passes.root, stateOf, person: createPersonsPasses(passes.root, SILENT) }
}

describe("a person in the shell", () => {
  test(
    promised("pass-over.A12", "a person in the shell sees decision, findings and files of a pass, and their changes"),
    async () => {
      const { id, person } = await openReturned()
      const { text } = await person.show(id)
      for (const part of [
        "coder  changes requested, 1 finding, 0 files read",
        "Objective: Work",
        "error a.txt:1: The b is missing",
        `Apply them: baton passes apply ${id}`,
      ])
        expect(text).toContain(part)
      expect(text).not.toContain("pass_over_apply")
      const diff = await person.diff(id)
      expect(diff.text).toMatch(/^diff --git a\/a\.txt b\/a\.txt\n/)
      for (const part of ["\n-a\n+b", "+++ b/new.txt"]) expect(diff.text).toContain(part)
    },
  )

  test(
    promised("pass-over.A12", "a person in the shell applies and rejects by the rules of the agent's tools"),
    async () => {
      const { id, root, person, stateOf } = await openReturned()
      const one = { ...ALL, files: ["new.txt"] }
      expect((await person.apply(id, { ...ALL, files: ["none.txt"] })).text).toContain("not among the files that wait")
      expect((await person.apply(id, one)).isDone).toBe(true)
      expect(readIn(root, "new.txt")).toBe("new\n")
      writeFileSync(join(root, "a.txt"), "mine\n")
      const refused = await person.apply(id, ALL)
      expect([refused.isDone, readIn(root, "a.txt")]).toEqual([false, "mine\n"])
      expect(refused.text).toContain("E022 APPLY_CONFLICT")
      expect(refused.text).toContain("apply the others with --file, or reject.")
      expect((await person.reject(id, ALL)).isDone).toBe(true)
      expect([readIn(root, "a.txt"), stateOf()]).toEqual(["mine\n", "applied"])
      expect((await person.apply(id, ALL)).text).toContain("no files that wait")
    },
  )

  test(
    promised(
      "people.D3b",
      "a person in the shell is told the commands of a person, wherever an agent's tools are named",
    ),
    async () => {
      const { id, person } = await openReturned()
      await person.reject(id, ALL)
      const again = await person.apply(id, ALL)
      expect(again.text).toMatch(/^Next: Look with baton passes show at what became of it\.$/m)
      const steps = [...Object.values(ERRORS).map(({ next_step }) => next_step), refusals.unknownPass(id).fix]
      const said = [
        ...steps,
        refusals.takenOver(id).fix,
        "Then pass_over_apply or pass_over_reject: they store it first.",
      ]
      expect(said.join()).toContain("pass_over_status")
      expect(said.map(forPerson).join()).not.toMatch(/pass_over_(?:apply|reject|status)/)
    },
  )

  test(
    promised("people.D3b", "a person in the shell sees in a diff what the agent wrote, the names of tools, too"),
    async () => {
      const passes = openFeaturePasses({ coder: writing({ "a.txt": "pass_over_status\n" }, ANSWER) })
      await passes.pass()
      const { text } = await createPersonsPasses(passes.root, SILENT).diff(passes.id())
      expect(text).toContain("+pass_over_status")
    },
  )

  test(
    promised("pass-over.A12", "a person in the shell is told of a pass that is not there, and of one that is at work"),
    async () => {
      const passes = openFeaturePasses({ coder: speakOn })
      void passes.pass()
      const id = await passes.reaches("waiting_for_return")
      const person = createPersonsPasses(passes.root, SILENT)
      expect((await person.show(id)).text).toContain("waiting_for_return")
      for (const done of [await person.diff(id), await person.apply(id, ALL), await person.reject(id, ALL)])
        expect(done.isDone).toBe(false)
      expect(existsSync(join(passes.folder, id, "pass.json"))).toBe(true)
      expect(await person.show("pass_none")).toMatchObject({ isDone: false })
    },
  )
})
