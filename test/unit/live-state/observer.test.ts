import { mkdirSync, readdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { createFileLock } from "../../../.opencode/baton/host/file-lock.ts"
import { MAX_EVENTS } from "../../../.opencode/baton/live-state/observe/history.ts"
import { createObserver } from "../../../.opencode/baton/live-state/observe/observer.ts"
import { listStates, pruneStates } from "../../../.opencode/baton/live-state/observe/state-files.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { liveFolder } from "../../support/opencode/live-stream.ts"
import { writeStatefile } from "../../support/opencode/observer.ts"

/** A pid above Linux's maximum, so that no process has it. */
const DEAD = 2 ** 22 + 1

const write = (folder: string, name: string, pid = process.pid, state: object = {}): void =>
  writeStatefile(folder, name, { opencode_pid: pid, ...state }, "2026-01-01T00:00:00.000Z")

/** A lock of a writer in another container, whose pid means nothing here. */
const lockElsewhere = (folder: string, name: string, ageMs = 0): void => {
  const path = join(folder, `${name}.lock`)
  writeFileSync(path, "token\n1\nanother-host\n")
  const at = new Date(Date.now() - ageMs)
  utimesSync(path, at, at)
}

const names = (states: readonly { readonly file: string }[]): string[] => states.map(({ file }) => file)

test(promised("live-state.B3", "an agent in another container lives while its writer keeps its lock"), async () => {
  const folder = liveFolder(temporaryFolder())
  write(folder, "living", DEAD)
  lockElsewhere(folder, "living")
  write(folder, "silent", DEAD)
  lockElsewhere(folder, "silent", 120_000)
  write(folder, "unlocked", DEAD)
  const alive = (await listStates(folder, () => {})).filter((found) => found.alive)
  expect(names(alive)).toEqual(["living.json"])
  expect((await pruneStates(folder, () => {})).sort()).toEqual(["silent.json", "unlocked.json"])
  expect(readdirSync(folder).sort()).toEqual(["living.json", "living.lock"])
})

test(promised("live-state.B3", "an agent's process that ended is not alive because another has its id"), async () => {
  const folder = liveFolder(temporaryFolder())
  for (const name of ["before-crashed", "before", "now"]) write(folder, name, process.pid)
  const held = await createFileLock({ path: join(folder, "now.lock") }).tryAcquire()
  onTestFinished(() => held?.release())
  // Its process began at another time.
  const lock = readFileSync(join(folder, "now.lock"), "utf8")
  writeFileSync(join(folder, "before.lock"), lock.replace(/\n[^\n]*\n$/, "\n1\n"))
  const alive = (await listStates(folder, () => {})).filter((found) => found.alive)
  expect(names(alive)).toEqual(["now.json"])
})

describe("an observer", () => {
  const observe = (...roots: string[]) => {
    const problems: string[] = []
    const observer = createObserver(roots, (problem) => problems.push(problem))
    onTestFinished(() => observer.close())
    return { look: observer.look, problems }
  }
  const idleAt = (at: string, turns: number) => ({
    agent: { is_idle: true, turn_count: turns, last_step: { event_type: "session.idle", at } },
  })

  test(promised("live-state.C1", "an observer keeps agents of one name in folders of one name apart"), async () => {
    const parent = temporaryFolder()
    const roots = ["one/app", "two/app"].map((path) => join(parent, path))
    const times = ["2026-01-01T00:00:01.000Z", "2026-01-01T00:00:02.000Z"]
    for (const [index, root] of roots.entries())
      write(liveFolder(root), "same", process.pid, idleAt(times[index] ?? "", index))
    const { look } = observe(...roots)
    await look()
    const seen = await look()
    expect(seen.map(({ view }) => view.since)).toEqual(times)
    expect(seen.map(({ key }) => key)).toEqual(["0/same.json", "1/same.json"])
  })

  test(promised("live-state.C1", "a project whose folder cannot be read hides none of the others"), async () => {
    const parent = temporaryFolder()
    const [broken, sound] = [join(parent, "broken"), join(parent, "sound")]
    mkdirSync(join(liveFolder(broken), "x.json"), { recursive: true })
    write(liveFolder(sound), "one")
    symlinkSync("loop.json", join(liveFolder(sound), "loop.json"))
    const { look, problems } = observe(broken, sound)
    expect((await look()).map(({ view }) => view.name)).toEqual(["one"])
    expect(problems.toSorted()).toEqual(
      ["broken/.*x", "sound/.*loop"].map((path) => expect.stringMatching(`${path}\\.json`)),
    )
  })

  test(
    promised("live-state.C2", "an observer keeps what it saw of an agent, and the agent if nothing is new"),
    async () => {
      const root = temporaryFolder()
      const folder = liveFolder(root)
      const { look } = observe(root)
      const kinds = async () => (await look())[0]?.history.map(({ kind }) => kind)
      write(folder, "one", process.pid, { agent: { is_idle: false, turn_count: 0 } })
      const [first] = await look()
      expect([first?.view.since, first?.history.map(({ kind }) => kind)]).toEqual([undefined, ["busy"]])
      expect((await look())[0]).toBe(first)
      write(folder, "one", process.pid, idleAt("2026-01-01T00:00:00.000Z", 1))
      expect(await kinds()).toEqual(["busy", "turn", "idle"])
      write(folder, "one", process.pid, { agent: { is_idle: false, turn_count: 1 } })
      expect((await look())[0]?.view.since).toBe("2026-01-01T00:00:00.000Z")
      write(folder, "one", DEAD, { agent: { is_idle: false, turn_count: 1 } })
      expect((await kinds())?.at(-1)).toBe("gone")
    },
  )

  test(promised("live-state.C3", "an observer keeps a bounded history"), async () => {
    const root = temporaryFolder()
    const { look } = observe(root)
    for (let n = 0; n < MAX_EVENTS + 10; n++) {
      write(liveFolder(root), "one", process.pid, { agent: { is_idle: n % 2 === 0, turn_count: 0 }, n })
      await look()
    }
    expect((await look())[0]?.history).toHaveLength(MAX_EVENTS)
  })
})
