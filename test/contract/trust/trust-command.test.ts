import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { stateRoot } from "../../../.opencode/baton/host/project.ts"
import { findForeign, MARK, quarantine, STATE_FORMAT } from "../../../.opencode/baton/host/state-mark.ts"
import { promised } from "../../requirements.ts"
import { shareBundle } from "../../support/files/bundle-project.ts"
import { createPatient } from "../../support/files/doctor-patient.ts"
import { snapshotTree } from "../../support/files/folder-tree.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { testsOnce } from "../../support/opencode/ends.ts"
import { BOTH_ENDS } from "../../support/opencode/opencode-binary.ts"

const createProject = shareBundle()
const RECORD = {
  version: 1,
  createdAt: "2026-01-01T10:20:30.000Z",
  entry: { kind: "log", taskID: "ts-b54507", message: "m" },
}

describe.each(BOTH_ENDS)("on OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  const setUp = () => {
    const { project, baton, write } = createProject(binary)
    const state = (...path: string[]) => join(stateRoot(project), ...path)
    const put = (path: string, content: unknown): void => write(`.opencode/state/${path}`, content)
    const aside = () => readdirSync(join(project, ".opencode")).filter((name) => name.startsWith("state.foreign-"))
    return { project, baton, state, put, write, aside }
  }

  const COMMANDS = [
    "handoffs",
    "learned",
    "outbox",
    "outbox retry",
    "passes restore p1",
    "state prune",
    "observe",
    "observe --json",
  ]
  once(
    promised(
      ["trust.A1", "people.D3b"],
      "commands refuse a state that is not this account's, and leave it where it is",
    ),
    () => {
      const { project, baton, put } = setUp()
      put("outbox/1.json", RECORD)
      put(MARK, "0")
      const before = snapshotTree(stateRoot(project))
      const stderr = expect.stringContaining("baton trust state")
      for (const command of COMMANDS) expect(baton(...command.split(" ")), command).toMatchObject({ status: 1, stderr })
      expect(snapshotTree(stateRoot(project))).toEqual(before)
    },
  )

  once(promised("trust.A1", "baton trust state takes back what is there, or the newest that was put aside"), () => {
    const { project, baton, state, put, aside } = setUp()
    put("outbox/1.json", RECORD)
    put("tasks/a.json", "old")
    put("tasks/b.json", "b")
    rmSync(state(MARK))
    quarantine(project)
    expect(baton("trust", "state", "--from", "state.foreign-none").stderr).toContain("there is no")
    put("tasks/a.json", "new")
    expect(baton("trust", "state").stdout).toBe(`${stateRoot(project)} is trusted\n`)
    const [name = ""] = aside()
    const taken = baton("trust", "state", project)
    expect(taken.stdout).toContain(`${name} is trusted, and back in`)
    expect(taken.stdout).toContain(`left there, since ${stateRoot(project)} has its own`)
    expect(readFileSync(state("tasks/a.json"), "utf8")).toBe("new")
    expect(readFileSync(state("tasks/b.json"), "utf8")).toBe("b")
    expect(readFileSync(join(project, ".opencode", name, "tasks/a.json"), "utf8")).toBe("old")
    expect(JSON.parse(readFileSync(state("outbox/1.json"), "utf8"))).toEqual(RECORD)
    expect(findForeign(project)).toBeUndefined()
    expect(baton("outbox").status).toBe(0)
  })

  once(promised("trust.A1", "what is a link, or tracked by git, is not trusted"), () => {
    const { project, baton, state, put, write } = setUp()
    put("outbox/1.json", RECORD)
    execFileSync("git", ["-C", project, "init", "-q"])
    execFileSync("git", ["-C", project, "add", "-f", state("outbox/1.json")])
    expect(baton("trust", "state").stderr).toContain("run git rm -r --cached .opencode/state, then this again")
    execFileSync("git", ["-C", project, "rm", "-rq", "--cached", state("outbox")])
    expect(baton("trust", "state").status).toBe(0)
    rmSync(stateRoot(project), { recursive: true })
    symlinkSync(temporaryFolder(), stateRoot(project))
    expect(baton("trust", "state").stderr).toContain("is not a folder")
    quarantine(project)
    expect(baton("trust", "state").stderr).toContain("is a link")
    // One that a repository brings under the name of a newest one.
    const brought = join(project, ".opencode", "state.foreign-9")
    write(".opencode/state.foreign-9/outbox/1.json", RECORD)
    execFileSync("git", ["-C", project, "add", "-f", brought])
    expect(baton("trust", "state").stderr).toContain("git tracks .opencode/state.foreign-9/outbox/1.json")
    expect(existsSync(join(brought, "outbox/1.json"))).toBe(true)
  })

  once(promised("trust.A5", "a state of a newer format is not trusted: its files would be misread"), () => {
    const { project, baton, put } = setUp()
    put("tasks/a.json", "a")
    put(MARK, `${STATE_FORMAT + 1} signed`)
    const before = snapshotTree(stateRoot(project))
    expect(baton("trust", "state")).toMatchObject({ status: 1, stderr: expect.stringContaining("a newer Baton") })
    expect(snapshotTree(stateRoot(project))).toEqual(before)
    quarantine(project)
    expect(baton("trust", "state")).toMatchObject({ status: 1, stderr: expect.stringContaining("a newer Baton") })
  })

  once(promised("trust.A1", "where git fails, a person's confirmation counts"), () => {
    const { project, baton, state, put } = setUp()
    execFileSync("git", ["-C", project, "init", "-q"])
    put("tasks/a.json", "a")
    execFileSync("git", ["-C", project, "add", ".opencode/baton"])
    execFileSync("git", ["-C", project, "update-index", "--index-version", "4"])
    writeFileSync(join(project, ".git/config"), "[")
    rmSync(state(MARK))
    expect(baton("trust", "state")).toMatchObject({ status: 0, stderr: expect.stringContaining("git does not tell") })
    expect(findForeign(project)).toBeUndefined()
  })

  once(promised("trust.A1", "what was put aside is not merged into a state that is foreign itself"), () => {
    const { project, baton, state, put, aside } = setUp()
    put("tasks/a.json", "a")
    rmSync(state(MARK))
    quarantine(project)
    put("outbox/1.json", RECORD)
    const before = snapshotTree(join(project, ".opencode"))
    const { status, stderr } = baton("trust", "state", "--from", aside()[0] ?? "")
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining("is foreign itself") })
    expect(snapshotTree(join(project, ".opencode"))).toEqual(before)
  })
})

test(promised("trust.A1", "doctor names foreign state, and what was put aside, and reads nothing of it"), async () => {
  const patient = createPatient()
  patient.write(".opencode/state/handoffs/handoff-1.json", "{")
  writeFileSync(join(stateRoot(patient.project), MARK), "0")
  const statuses = async (id: string) => {
    rmSync(join(patient.root, "temporary/scratch"), { recursive: true, force: true })
    return (await patient.look(id)).findings.map(({ status, message }) => [status, message])
  }
  expect(await statuses("state")).toContainEqual(["warning", expect.stringContaining(".opencode/state is not read")])
  expect(await statuses("handoffs")).toEqual([])
  quarantine(patient.project)
  expect(await statuses("state")).toContainEqual([
    "warning",
    expect.stringContaining("was put aside without being read"),
  ])
})
