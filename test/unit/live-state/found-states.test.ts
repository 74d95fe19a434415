import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { createObserver } from "../../../.opencode/baton/live-state/observe/observer.ts"
import { listStates, pruneStates } from "../../../.opencode/baton/live-state/observe/state-files.ts"
import { type SeenStates, watchStatefiles } from "../../../.opencode/baton/live-state/web/watch.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { eventually } from "../../support/opencode/opencode-server.ts"

/** A pid above Linux's maximum, so that no process has it. */
const DEAD = 2 ** 22 + 1

const liveFolder = (project: string): string => {
  const folder = join(project, ".opencode", "state", "live")
  mkdirSync(folder, { recursive: true })
  return folder
}

const write = (folder: string, name: string, pid = process.pid, state: Record<string, unknown> = {}): void => {
  const whole = { c2c_session_id: name, opencode_pid: pid, ...state }
  const envelope = { event: "state.snapshot", ts: "2026-01-01T00:00:00.000Z", state: whole }
  writeFileSync(join(folder, `${name}.json`), JSON.stringify(envelope))
}

/** A lock of a writer in another container, whose pid means nothing here. */
const lockElsewhere = (folder: string, name: string, ageMs = 0): void => {
  const path = join(folder, `${name}.lock`)
  writeFileSync(path, "token\n1\nanother-host\n")
  const at = new Date(Date.now() - ageMs)
  utimesSync(path, at, at)
}

const names = (states: readonly { readonly file: string }[]): string[] => states.map(({ file }) => file)

describe("the statefiles of a folder", () => {
  test(
    promised("live-state.B3", "an agent in another container lives as long as its writer keeps its lock"),
    async () => {
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
    },
  )
})

describe("an observer of several projects", () => {
  test(promised("live-state.C1", "keeps agents of one name in folders of one name apart"), async () => {
    const parent = temporaryFolder()
    const [one, two] = [join(parent, "one", "app"), join(parent, "two", "app")]
    const times = ["2026-01-01T00:00:01.000Z", "2026-01-01T00:00:02.000Z"]
    for (const [index, at] of times.entries())
      write(liveFolder([one, two][index] ?? ""), "same", process.pid, { agent: { is_idle: false, last_step: { at } } })
    const observe = createObserver([one, two], () => {})
    await observe()
    expect((await observe()).map(({ since }) => since)).toEqual(times)
  })

  test(promised("live-state.C1", "a project whose folder cannot be read hides none of the others"), async () => {
    const parent = temporaryFolder()
    const [broken, sound] = [join(parent, "broken"), join(parent, "sound")]
    mkdirSync(join(liveFolder(broken), "x.json"))
    write(liveFolder(sound), "one")
    const problems: string[] = []
    const views = await createObserver([broken, sound], (problem) => problems.push(problem))()
    expect(views.map(({ name }) => name)).toEqual(["one"])
    expect(problems).toHaveLength(1)
    const seen: SeenStates[] = []
    const reported: string[] = []
    const see = (states: readonly SeenStates[]) => seen.push(...states)
    const watching = watchStatefiles([broken, sound].map(liveFolder), see, (problem) => reported.push(problem))
    onTestFinished(() => watching.close())
    await eventually("the agent on the page", () => seen.flatMap(({ changed }) => changed)[0])
    expect(reported[0]).toContain("x.json")
  })
})
