import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"
import { snapshotTree } from "../../support/files/folder-tree.ts"
import { type AgentTurn, fakeToolContext } from "../../support/opencode/fake-opencode.ts"
import { openFeaturePasses, speakOn } from "../../support/opencode/feature-passes.ts"
import { readIn } from "../../support/opencode/pass-project.ts"
import { testRandom } from "../../support/test-random.ts"

const PASSES = runs(20)
const AT_ONCE = 4
const SHARED = ["shared-0.txt", "shared-1.txt", "shared-2.txt"]

/** Paths of the project's files as the user sees them, without git's and the bundle's own. */
const visible = (root: string): string[] =>
  Object.keys(snapshotTree(root)).filter((path) => path !== "own" && !/^\.(?:git|opencode)(?:\/|$)/.test(path))

const FAULTS = "none none crash crash-late prose wrong-return hang create-fails messages-fail".split(" ")

test(promised(
  "pass-over.G2",
  "random passes under random faults lose nothing and change nothing that was not applied",
), async () => {
  const random = testRandom()
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
  let failing = new Set<string>()
  const coder = async (turn: AgentTurn): Promise<void> => {
    const { text, write, giveBack, say } = turn
    const [, number = "", fault = ""] = /WORK (\d+) (\S+)/.exec(text) ?? []
    const shared = SHARED[Number(number) % SHARED.length] ?? ""
    if (fault === "crash") throw new Error("the model fails")
    await write(shared, `changed by ${number}\n`)
    await write(`own/${number}.txt`, `made by ${number}\n`)
    if (fault === "crash-late") throw new Error("the model fails")
    if (fault === "hang" && !turn.signal.aborted) await speakOn(turn)
    if (fault === "prose") return say("I am done, more or less.")
    for (const _ of [1, 2, 3]) if (fault === "wrong-return") await giveBack({ status: "great" })
    await giveBack({ status: "completed", summary: `Work ${number}` })
  }
  const { root, folder, ids, opencode, feature, log, pass, recordOf } = openFeaturePasses({
    coder,
    defaults: { max_retries: 1, max_passes_per_session: 1_000 },
    files: Object.fromEntries(SHARED.map((path) => [path, `${path}\n`])),
    faults: (call) => (failing.has(call) ? "InjectedFault" : undefined),
  })
  const expected = new Map(SHARED.map((path) => [path, readIn(root, path)]))

  const passOne = async (number: number): Promise<{ id: string; answer: string }> => {
    const fault = pick(FAULTS)
    const abort = new AbortController()
    if (fault === "create-fails") failing = new Set(["create"])
    if (fault === "messages-fail") failing = new Set(["messages"])
    if (fault === "hang") setTimeout(() => abort.abort(), 300)
    const context = fakeToolContext(opencode.rootID, abort.signal)
    const answer = await pass({ objective: `WORK ${number} ${fault}` }, context)
    return { id: /pass_\d{17}_\w+/.exec(answer)?.[0] ?? "", answer }
  }

  for (let number = 0; number < PASSES; number += AT_ONCE) {
    failing = new Set()
    const batch = await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => passOne(number + at)))
    failing = new Set()
    const edited = pick(SHARED)
    if (random() < 0.3) {
      expected.set(edited, `the user's ${number}\n`)
      writeFileSync(join(root, edited), `the user's ${number}\n`)
    }
    for (const { id } of batch) {
      if (id === "") continue
      const context = fakeToolContext(opencode.rootID)
      if (random() < 0.4) {
        await feature.reject({ pass_over_id: id }, context)
        continue
      }
      const answer = await feature.apply({ pass_over_id: id, all_or_nothing: random() < 0.5 }, context)
      for (const [, path = "", outcome = ""] of answer.matchAll(/^- (\S+): (\w+)/gm)) {
        if (outcome !== "applied") continue
        const found = readIn(root, path)
        expect(found).toMatch(/^(?:changed|made) by \d+\n$/)
        expected.set(path, found)
      }
    }
    expect(Object.fromEntries(visible(root).map((path) => [path, readIn(root, path)]))).toEqual(
      Object.fromEntries(expected),
    )
  }

  // The result arrives at the return, and the turn ends after it.
  await expect.poll(() => opencode.isBusy()).toBe(false)
  const states = ids().map((id) => recordOf(id).state.state)
  expect(states.filter((state) => !["returned", "applied", "rejected", "cancelled"].includes(state))).toEqual([])
  expect(ids().filter((id) => existsSync(join(folder, id, "copy")))).toEqual([])
  const logs = join(root, ".opencode", "pass-over-logs")
  const audit = readdirSync(logs, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => readIn(logs, name))
    .join("")
  expect(ids().filter((id) => !audit.includes(id))).toEqual([])
  expect(log.lines.filter(({ level }) => level === "error")).toEqual([])
  await feature.stop()
  const children = spawnSync("ps", ["-o", "pid=,args=", "--ppid", String(process.pid)], { encoding: "utf8" }).stdout
  expect(children.split("\n").filter((line) => /\bgit\b/.test(line))).toEqual([])
}, 120_000)
