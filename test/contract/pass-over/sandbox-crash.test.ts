import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"
import { BOTH_ENDS } from "../../support/opencode/opencode-binary.ts"
import { createPassProject, projectTree, spawnPass, succeed } from "../../support/opencode/pass-project.ts"
import { testRandom } from "../../support/test-random.ts"

const COUNT = 60
const STEPS = ["started", "created", "ready", "edited", "collected"] as const

const files = Object.fromEntries(Array.from({ length: COUNT }, (_, at) => [`src/${at % 7}/f${at}.txt`, `line ${at}\n`]))
/** Changes every file, deletes some, and adds some. */
const edits: Record<string, string | null> = {
  ...Object.fromEntries(
    Object.keys(files).map((path, at) => [path, at % 5 === 0 ? null : `child ${at}\n`.repeat(200)]),
  ),
  ...Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`added/${at % 3}/n${at}.txt`, `new ${at}\n`])),
}

const edited = Object.fromEntries(
  Object.entries({ ...files, ...edits }).flatMap(([path, text]) => (text === null ? [] : [[path, text]])),
)

/** Resolves with the steps at the process's end; `onStep` is called at each. */
const follow = async (child: ChildProcess, onStep: (step: string) => void): Promise<string[]> => {
  const steps: string[] = []
  child.stdout?.on("data", (chunk: Buffer) => {
    for (const step of chunk.toString().trim().split("\n")) {
      steps.push(step)
      onStep(step)
    }
  })
  await once(child, "close")
  return steps
}

const withoutGit = ({ root }: { root: string }): Record<string, string> =>
  Object.fromEntries(Object.entries(projectTree(root)).filter(([path]) => !path.startsWith(".git/")))

describe.each(BOTH_ENDS)("in the runtime of OpenCode $version", (binary) => {
  test(promised(
    "pass-over.B3",
    "kill -9 at any moment leaves the worktree as it was or can be restored to that, and no change is lost",
  ), async () => {
    const whole = withoutGit(createPassProject({ files: edited }))
    const random = testRandom()
    for (let round = 0; round < runs(2); round++) {
      const step = (round % 2 === 1 && STEPS[Math.floor(random() * STEPS.length)]) || "collected"
      const project = createPassProject({ files })
      const before = withoutGit(project)
      const child = spawnPass(binary, project.root, "p1", edits)
      // A random moment after that step; applying, after the last step, takes the longest.
      const moment = random() * (step === "collected" ? 250 : 60)
      const steps = await follow(child, (each) => {
        if (each === step) setTimeout(() => child.kill("SIGKILL"), moment)
      })
      const said = `round ${round}, ${moment} ms after ${step}`
      expect(steps, said).toContain(step)
      const [pending] = await project.passes.pending()
      expect(pending?.isOwned ?? false, said).toBe(false)
      const collected = pending && succeed(await project.passes.collect("p1"))
      expect(collected?.leftAlone ?? [], said).toEqual([])
      const now = withoutGit(project)
      const isApplied = Object.keys(now).some((path) => path.startsWith("added/"))
      expect(now, said).toEqual(isApplied ? whole : before)
      if (["collected", "edited"].includes(step) && !isApplied) {
        expect(succeed(await project.passes.apply("p1")).complete, said).toBe(true)
        expect(withoutGit(project), said).toEqual(whole)
      }
    }
  }, 120_000)
})
