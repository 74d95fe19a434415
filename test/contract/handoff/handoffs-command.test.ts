import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect } from "vitest"
import { promised } from "../../requirements.ts"
import { shareBundle } from "../../support/files/bundle-project.ts"
import { testsOnce } from "../../support/opencode/ends.ts"
import { BOTH_ENDS } from "../../support/opencode/opencode-binary.ts"

const record = (id: string, from: string, to: readonly string[]) => ({
  ...{ version: 1, id, createdAt: "2026-01-01T10:20:30.000Z", from, goal: `goal ${id}`, draft: `draft ${id}` },
  ...{ files: [], leftOut: [], taskID: "ts-b54507" },
  arrivals: to.map((sessionID) => ({ sessionID, at: "2026-01-01T10:21:00.000Z" })),
})

const createProject = shareBundle()

describe.each(BOTH_ENDS)("baton handoffs on OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  const setUp = () => {
    const { project, baton } = createProject(binary)
    return {
      handoffs: (...args: string[]) => baton("handoffs", ...args),
      folder: join(project, ".opencode", "state", "handoffs"),
    }
  }

  once(promised("handoff.B5", "lists them, follows a chain, prints a draft, names what is damaged"), () => {
    const { handoffs, folder } = setUp()
    expect(handoffs().stdout).toBe("No handoffs\n")
    mkdirSync(folder, { recursive: true })
    const all = [record("1", "ses_A", ["ses_B"]), record("2", "ses_B", ["ses_C"]), record("3", "ses_X", [])]
    for (const each of all) writeFileSync(join(folder, `handoff-${each.id}.json`), JSON.stringify(each))
    const first = "2026-01-01 10:20  1  ses_A → ses_B  ts-b54507  goal 1\n"
    const second = "2026-01-01 10:20  2  ses_B → ses_C  ts-b54507  goal 2\n"
    const listed = handoffs()
    expect([listed.status, listed.stderr]).toEqual([0, ""])
    expect(listed.stdout).toBe(`${first}${second}2026-01-01 10:20  3  ses_X → (not sent yet)  ts-b54507  goal 3\n`)
    for (const end of ["ses_A", "ses_C"]) expect(handoffs("--session", end).stdout).toBe(first + second)
    expect(JSON.parse(handoffs("--json", "--session", "ses_X").stdout)).toEqual([all[2]])
    expect(handoffs("--draft", "2").stdout).toBe("draft 2\n")

    writeFileSync(join(folder, "handoff-4.json"), "{")
    const damaged = handoffs()
    expect(damaged.status).toBe(1)
    expect(damaged.stdout).toContain("goal 3")
    expect(damaged.stderr).toContain("stored state is unusable and ignored")
  })

  once(promised("handoff.B5", "says what it expected of a wrong command line"), () => {
    const { handoffs } = setUp()
    const unknown = handoffs("--nonsense")
    expect([unknown.status, unknown.stdout]).toEqual([2, ""])
    expect(unknown.stderr).toMatch(/^handoffs: .*--nonsense.*\nTry: baton handoffs --help\n$/s)
    expect(handoffs("a", "b").stderr).toContain("expected one project folder, received 2")
    expect(handoffs("--help").stdout).toMatch(/^Usage: baton handoffs/)
    expect(handoffs("--draft", "none").status).toBe(1)
  })
})
