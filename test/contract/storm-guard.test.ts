import { appendFileSync, chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { promised } from "../requirements.ts"
import { OLDEST } from "../support/opencode-binary.ts"
import { openGuard } from "../support/storm/guard.ts"
import { runTurn } from "../support/storm/run-turn.ts"
import { temporaryFolder } from "../support/temporary-folder.ts"
import { createTestProject } from "../support/test-project.ts"

const openProject = () => {
  const project = createTestProject({ binary: OLDEST, modelURL: "http://127.0.0.1:9", bundle: "none" })
  onTestFinished(project.remove)
  return project
}

/** A program in OpenCode's place. */
const fakeBinary = (script: string) => {
  const path = join(temporaryFolder(), "opencode")
  writeFileSync(path, `#!/bin/sh\n${script}\n`)
  chmodSync(path, 0o755)
  return { version: "fake", path }
}

describe("the guard of a storm", () => {
  test(
    promised("storm.B3", "sees a reading through a link out of the project, where the file system tells"),
    ({ skip }) => {
      const project = openProject()
      const guard = openGuard(project)
      if (!guard.canSeeReads()) skip("this file system does not note when a file was read")
      guard.survey()
      guard.setBaits()
      expect(guard.readBaits()).toEqual([])
      readFileSync(join(project.directory, "link-out", "secret.txt"))
      expect(guard.readBaits()).toEqual([expect.stringMatching(/sibling\/secret\.txt$/)])
    },
  )

  test(promised("storm.B3", "sees what is changed beside the project, and in it"), () => {
    const project = openProject()
    const guard = openGuard(project)
    const before = guard.survey()
    expect(guard.survey()).toEqual(before)
    appendFileSync(join(project.directory, "..", "outside", "secret.txt"), "more")
    expect(guard.survey().beside).not.toEqual(before.beside)
    expect(guard.survey().project).toEqual(before.project)
    const beside = guard.survey().beside
    writeFileSync(join(project.directory, "..", "new.txt"), "")
    expect(guard.survey().beside).not.toEqual(beside)
    rmSync(join(project.directory, "README.md"))
    expect(guard.survey().project).not.toEqual(before.project)
  })

  test(
    promised("storm.B3", "leaves out what the bundle and OpenCode keep for themselves, and nothing else of git"),
    () => {
      const project = openProject()
      const guard = openGuard(project)
      const before = guard.survey()
      mkdirSync(join(project.directory, ".opencode", "state"))
      writeFileSync(join(project.directory, ".opencode", "state", "a.json"), "{}")
      expect(guard.survey()).toEqual(before)
      writeFileSync(join(project.directory, ".git", "HEAD"), "ref: refs/heads/other\n")
      expect(guard.survey().project).not.toEqual(before.project)
    },
  )
})

describe("a run of a storm", () => {
  test(promised("storm.B3", "that crashes is seen with its exit code and its words"), async () => {
    const project = openProject()
    const binary = fakeBinary("echo 'Unexpected server error' >&2; exit 7")
    expect(await runTurn({ project, binary }, { message: "Go.", args: [] })).toMatchObject({
      exitCode: 7,
      signal: null,
      stderr: "Unexpected server error\n",
    })
  })

  test(promised("storm.B3", "that hangs is ended by its id at the limit"), async () => {
    const project = openProject()
    const binary = fakeBinary("exec sleep 60")
    const ending = await runTurn({ project, binary }, { message: "Go.", args: [], limitMs: 300 })
    expect(ending).toMatchObject({ exitCode: null, signal: "SIGKILL" })
    expect(ending.durationMs).toBeGreaterThanOrEqual(290)
  })
})
