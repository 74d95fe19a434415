import { readdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { accountFolder, stateRoot } from "../../../.opencode/baton/host/project.ts"
import { makeState } from "../../../.opencode/baton/host/state-mark.ts"
import { createObserver } from "../../../.opencode/baton/live-state/observe/observer.ts"
import { listProjects, noteProject } from "../../../.opencode/baton/live-state/projects.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { liveFolder } from "../../support/opencode/live-stream.ts"
import { writeStatefile } from "../../support/opencode/observer.ts"

const never = (problem: string): never => expect.fail(problem)

test(promised("waiting.B2", "the account's projects are noted once, and forgotten when they are gone"), () => {
  const environment = { XDG_STATE_HOME: temporaryFolder() }
  expect(listProjects(never, environment)).toEqual([])
  const [one, other] = [temporaryFolder(), temporaryFolder()]
  for (const root of [one, other, one]) noteProject(root, environment)
  expect(listProjects(never, environment).sort()).toEqual([one, other].sort())
  rmSync(other, { recursive: true })
  expect(listProjects(never, environment)).toEqual([one])
  const folder = join(accountFolder(environment), "projects")
  expect(readdirSync(folder)).toHaveLength(1)
  writeFileSync(join(folder, "broken.json"), "{")
  const problems: string[] = []
  expect(listProjects((problem) => problems.push(problem), environment)).toEqual([one])
  expect(problems).toEqual([expect.stringContaining("broken.json")])
})

test(promised("waiting.B2", "of the account's other projects an observer shows the agents that wait"), async () => {
  const [own, other, foreign] = [temporaryFolder(), temporaryFolder(), temporaryFolder()]
  makeState(stateRoot(other))
  const pendingQuestion = { id: "q", header: "", text: "Which one?", options: [] }
  writeStatefile(liveFolder(own), "busy")
  writeStatefile(liveFolder(foreign), "asks", { pendingQuestion })
  writeStatefile(liveFolder(other), "busy-elsewhere")
  const problems: string[] = []
  const observer = createObserver(
    [own],
    (problem) => problems.push(problem),
    () => [own, other, foreign],
  )
  const names = async () => (await observer.look()).map(({ root, view }) => [root, view.name])
  expect(await names()).toEqual([[own, "busy"]])
  writeStatefile(liveFolder(other), "busy-elsewhere", { pendingQuestion })
  expect(await names()).toEqual([
    [own, "busy"],
    [other, "busy-elsewhere"],
  ])
  expect(problems, "said once").toEqual([expect.stringContaining(`the state of ${foreign}`)])
  observer.close()
})
