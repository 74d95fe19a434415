import { execFileSync } from "node:child_process"
import { existsSync } from "node:fs"
import { homedir } from "node:os"
import { describe, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { BOTH_ENDS, locateOpenCode } from "../support/opencode-binary.ts"
import { closeTaskProjects, openTaskProject } from "../support/task-project.ts"

closeTaskProjects()

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised("repo.A3", "the binary is the real one of that version, and the model sees what it is sent"),
    async () => {
      const task = await openTaskProject(binary, () => ({ text: "Heard." }))
      const environment = { ...task.project.environment }
      expect(execFileSync(binary.path, ["--version"], { env: environment, encoding: "utf8" }).trim()).toBe(
        binary.version,
      )
      expect(task.model.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1$/)
      const result = await task.run("A-MESSAGE-OF-ITS-OWN")
      expect(result.exitCode, result.stderr).toBe(0)
      expect(result.stdout).toContain("Heard.")
      expect(task.model.received("turn")[0]?.conversation).toContain("A-MESSAGE-OF-ITS-OWN")
    },
  )

  test(promised("repo.A3", "home, configuration and ledger lie in a folder that is gone afterwards"), async () => {
    const task = await openTaskProject(binary, () => ({ text: "Heard." }))
    const { environment, home, remove } = task.project
    for (const name of ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "PROG_DB"]) {
      expect(environment[name], name).toContain(home)
    }
    expect(home.startsWith(homedir())).toBe(false)
    await remove()
    expect(existsSync(home)).toBe(false)
  })
})

test(promised("repo.A3", "a missing binary is an error that says what to do, not a skipped test"), () => {
  expect(() => locateOpenCode("newest", "/nowhere")).toThrow(/is not installed: expected \/nowhere.*npm ci/s)
})
