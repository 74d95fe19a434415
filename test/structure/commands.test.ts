import { spawnSync } from "node:child_process"
import { accessSync, constants, cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { temporaryFolder } from "../support/files/with-test.ts"
import { REPOSITORY } from "../support/opencode/opencode-binary.ts"

const NAMES = ["test", "demo", "bench", "storm", "install", "doctor", "picture", "real-prog"]
const COMMANDS = NAMES.map((name) => `scripts/${name}`)
const read = (path: string): string => readFileSync(join(REPOSITORY, path), "utf8")

describe("the project's commands", () => {
  test.each([...COMMANDS, ".ci/run"])(promised("repo.A2", "%s is a POSIX shell script and says its use"), (path) => {
    accessSync(join(REPOSITORY, path), constants.X_OK)
    expect(read(path).split("\n")[0]).toBe("#!/bin/sh")
    const parsed = spawnSync("sh", ["-n", join(REPOSITORY, path)], { encoding: "utf8" })
    expect(parsed.stderr).toBe("")
    if (path === ".ci/run") return
    const shown = spawnSync(join(REPOSITORY, path), ["--help"], { encoding: "utf8", cwd: temporaryFolder() })
    expect(shown.status, shown.stderr).toBe(0)
    expect(shown.stdout).toContain("Usage:")
  })

  /** Installs packages in a checkout with a node and an npm that only say that they were called. */
  const openCheckout = (nodeMajor: string) => {
    const checkout = temporaryFolder()
    mkdirSync(join(checkout, "bin"))
    cpSync(join(REPOSITORY, "scripts/support/set-up.sh"), join(checkout, "scripts/support/set-up.sh"))
    const fakes = { node: `echo ${nodeMajor}`, npm: 'echo "npm $*" >> npm-calls; mkdir -p node_modules' }
    for (const [name, script] of Object.entries(fakes))
      writeFileSync(join(checkout, "bin", name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    return {
      calls: () => readFileSync(join(checkout, "npm-calls"), "utf8").trim().split("\n").length,
      install: (lock: string) => {
        writeFileSync(join(checkout, "package-lock.json"), lock)
        const options = { cwd: checkout, env: { PATH: `${join(checkout, "bin")}:/usr/bin:/bin` } }
        const args = ["-c", ". scripts/support/set-up.sh; install_packages"]
        const { status, stderr } = spawnSync("sh", args, { encoding: "utf8", ...options })
        return { status, stderr }
      },
    }
  }

  test(promised("repo.A2", "packages are installed once, again when the lock changes, and on no old Node"), () => {
    const { install, calls } = openCheckout("20")
    expect(install("{}").status).toBe(0)
    expect(calls()).toBe(1)
    expect(install("{}")).toEqual({ status: 0, stderr: "" })
    expect(calls()).toBe(1)
    install('{"changed":true}')
    expect(calls()).toBe(2)
    const stderr = expect.stringContaining("Node 20 or newer is needed")
    expect(openCheckout("18").install("{}")).toEqual({ status: 1, stderr })
  })
})

test(promised("repo.A5", "one command formats, lints, type-checks and tests"), () => {
  const { scripts } = JSON.parse(read("package.json"))
  for (const part of ["format", "lint", "types", "test:unit"]) expect(scripts.check).toContain(`npm run ${part}`)
  for (const part of ["format", "lint", "types", "vitest run"]) expect(read("scripts/test")).toContain(part)
  for (const part of ["--error-on-warnings", "--deny-warnings"]) expect(scripts.lint).toContain(part)
  for (const path of ["README.md", ".ci/run"]) expect(read(path)).toContain("./scripts/test")
})
