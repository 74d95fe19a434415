import { expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { shareBundle } from "../../support/files/bundle-project.ts"
import { handoffRecord } from "../../support/handoff-record.ts"
import { endsOf } from "../../support/opencode/ends.ts"

const record = (id: string, from: string, to: readonly string[]) =>
  handoffRecord(from, to, { id, goal: `goal ${id}`, draft: `draft ${id}`, taskID: "ts-b54507" })

const createProject = shareBundle()

test.each(endsOf(0))(
  promised("handoff.B5", "baton handoffs lists, follows a chain, prints a draft, names damage, on OpenCode $version"),
  (binary) => {
    const { baton, write } = createProject(binary)
    const handoffs = (...args: string[]) => baton("handoffs", ...args)
    expect(handoffs().stdout).toBe("No handoffs\n")
    const all = [record("1", "ses_A", ["ses_B"]), record("2", "ses_B", ["ses_C"]), record("3", "ses_X", [])]
    for (const each of all) write(`.opencode/state/handoffs/handoff-${each.id}.json`, each)
    const first = "2026-01-01 10:20  1  ses_A → ses_B  ts-b54507  goal 1\n"
    const second = "2026-01-01 10:20  2  ses_B → ses_C  ts-b54507  goal 2\n"
    const listed = handoffs()
    expect([listed.status, listed.stderr]).toEqual([0, ""])
    expect(listed.stdout).toBe(`${first}${second}2026-01-01 10:20  3  ses_X → (not sent yet)  ts-b54507  goal 3\n`)
    for (const end of ["ses_A", "ses_C"]) expect(handoffs("--session", end).stdout).toBe(first + second)
    expect(JSON.parse(handoffs("--json", "--session", "ses_X").stdout)).toEqual([all[2]])
    expect(handoffs("--draft", "2").stdout).toBe("draft 2\n")
    expect(handoffs("--draft", "none").status).toBe(1)

    write(".opencode/state/handoffs/handoff-4.json", "{")
    const damaged = handoffs()
    expect(damaged.status).toBe(1)
    expect(damaged.stdout).toContain("goal 3")
    expect(damaged.stderr).toContain("stored state is unusable and ignored")
  },
)
