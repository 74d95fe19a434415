import { type ChildProcess, spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"
import { BOTH_ENDS, type OpenCodeBinary, REPOSITORY } from "../../support/opencode/opencode-binary.ts"
import {
  createPassProject,
  type PassProject,
  projectTree,
  readIn,
  succeed,
} from "../../support/opencode/pass-project.ts"
import { testRandom } from "../../support/test-random.ts"

const FIXTURE = join(REPOSITORY, "test", "fixtures", "pass-files.ts")
const COUNT = 60
const STEPS = ["started", "begun", "entered", "edited", "withheld"] as const

const files = Object.fromEntries(Array.from({ length: COUNT }, (_, at) => [`src/${at % 7}/f${at}.txt`, `line ${at}\n`]))
/** Changes every file, deletes some, and adds some. */
const edits: Record<string, string | null> = {
  ...Object.fromEntries(
    Object.keys(files).map((path, at) => [path, at % 5 === 0 ? null : `child ${at}\n`.repeat(200)]),
  ),
  ...Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`added/${at % 3}/n${at}.txt`, `new ${at}\n`])),
}

const startPass = (binary: OpenCodeBinary, root: string, passID: string): ChildProcess =>
  spawn(binary.path, ["--no-env-file", "--config=/dev/null", "run", FIXTURE, root, passID, JSON.stringify(edits)], {
    env: { ...process.env, BUN_BE_BUN: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  })

/** Resolves with the process's output at its end; `onStep` is called at each step. */
const follow = (child: ChildProcess, onStep: (step: string) => void = () => {}): Promise<string> =>
  new Promise((resolve) => {
    let said = ""
    const hear = (chunk: Buffer): void => {
      said += chunk.toString()
      for (const step of chunk.toString().trim().split("\n")) onStep(step)
    }
    child.stdout?.on("data", hear)
    child.stderr?.on("data", (chunk: Buffer) => (said += chunk.toString()))
    child.on("close", () => resolve(said))
  })

const appliedTree = async (binary: OpenCodeBinary): Promise<Record<string, string>> => {
  const project = createPassProject({ files })
  const said = await follow(startPass(binary, project.root, "whole"))
  expect(said).toContain("applied")
  return withoutGit(project)
}

const withoutGit = ({ root }: PassProject): Record<string, string> =>
  Object.fromEntries(Object.entries(projectTree(root)).filter(([path]) => !path.startsWith(".git/")))

describe.each(BOTH_ENDS)("in the runtime of OpenCode $version", (binary) => {
  test(promised("pass-over.B2", "a pass goes from its copy to its applied changes"), async () => {
    const project = createPassProject({ files })
    const said = await follow(startPass(binary, project.root, "p1"))
    expect(said.split("\n").filter((line) => line !== "")).toEqual([
      "started",
      "begun",
      "entered",
      "edited",
      "withheld",
      "applied",
    ])
    for (const [path, content] of Object.entries(edits)) {
      if (content === null) expect(existsSync(join(project.root, path)), path).toBe(false)
      else expect(readIn(project.root, path)).toBe(content)
    }
    expect(await project.passes.pending()).toEqual([])
  })

  test(promised(
    "pass-over.B3",
    "kill -9 at any moment leaves the worktree as it was or can be restored to that, and no change is lost",
  ), async () => {
    const whole = await appliedTree(binary)
    const random = testRandom()
    for (let round = 0; round < runs(2); round++) {
      const step = (round % 2 === 1 && STEPS[Math.floor(random() * STEPS.length)]) || "withheld"
      const project = createPassProject({ files })
      const before = withoutGit(project)
      const child = startPass(binary, project.root, "p1")
      // A random moment after that step; applying, after the last step, takes the longest.
      const moment = random() * (step === "withheld" ? 250 : 60)
      await follow(child, (each) => {
        if (each === step) setTimeout(() => child.kill("SIGKILL"), moment)
      })
      const said = `round ${round}, ${moment} ms after ${step}`
      const [pending] = await project.passes.pending()
      expect(pending?.isOwned ?? false, said).toBe(false)
      const restored = pending && succeed(await project.passes.restore("p1"))
      expect(restored?.leftAlone ?? [], said).toEqual([])
      const now = withoutGit(project)
      const isApplied = Object.keys(now).some((path) => path.startsWith("added/"))
      expect(now, said).toEqual(isApplied ? whole : before)
      if (["withheld", "edited"].includes(step) && !isApplied) {
        expect(succeed(await project.passes.apply("p1")).complete, said).toBe(true)
        expect(withoutGit(project), said).toEqual(whole)
      }
    }
  }, 120_000)
})
