import { basename } from "node:path"
import { describe, expect } from "vitest"
import { promised } from "../../requirements.ts"
import { shareBundle } from "../../support/files/bundle-project.ts"
import { testsOnce } from "../../support/opencode/ends.ts"
import { BOTH_ENDS } from "../../support/opencode/opencode-binary.ts"

const createProject = shareBundle()

describe.each(BOTH_ENDS)("the embedded ledger on OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  const setUp = () => {
    const { project, prog } = createProject(binary)
    const ok = (...args: string[]): string => {
      const { status, stdout, stderr } = prog(...args)
      expect({ args, status, stderr }).toEqual({ args, status: 0, stderr: "" })
      return stdout.trimEnd()
    }
    return { name: basename(project), ok, prog }
  }

  once(promised("people.D3a", "list and ready show the folder's tasks, and count the others"), () => {
    const { ok } = setUp()
    const epic = ok("add", "-e", "An epic elsewhere", "-p", "other")
    const theirs = ok("add", "Theirs", "-p", "other", "--parent", epic)
    const ours = ok("add", "Ours")
    for (const [command = "", others] of [
      ["list", 2],
      ["ready", 1],
    ] as const) {
      const [head, row, ...more] = ok(command).split("\n")
      expect(head).toMatch(/^ID .* TITLE$/)
      expect(row).toMatch(new RegExp(`^${ours} .* Ours$`))
      expect(more).toEqual([`(${others} more in other projects: prog ${command} --all)`])
      for (const flags of [["--all"], ["--json"], ["-p", "other"]]) expect(ok(command, ...flags)).toContain(theirs)
      expect(ok(command, "--all")).toContain(ours)
      expect(ok(command, "-p", "other")).not.toContain(ours)
    }
    expect(ok("list", "--parent", epic)).toContain(theirs)
    ok("done", ours)
    expect(ok("ready")).toMatch(/^No ready tasks in .*\n\(1 more in other projects: prog ready --all\)$/)
  })

  once(promised("people.D3a", "an empty list names the project, and an unknown id is said in words"), () => {
    const { ok, prog, name } = setUp()
    ok("init")
    expect([ok("list"), ok("ready")]).toEqual([`No items in ${name}`, `No ready tasks in ${name}`])
    const { status, stderr } = prog("log", "ts-000000", "hello")
    expect(status).toBe(1)
    expect(stderr).toMatch(/^Error: item not found: ts-000000 /)
  })
})
