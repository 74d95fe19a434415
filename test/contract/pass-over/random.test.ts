import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { createServices } from "../../../.opencode/baton/core/services.ts"
import { createPassOverFeature } from "../../../.opencode/baton/pass-over/feature.ts"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"
import { snapshotTree } from "../../support/files/folder-tree.ts"
import { temporaryFolder } from "../../support/files/temporary-folder.ts"
import { type AgentTurn, createFakeOpenCode, fakeToolContext } from "../../support/opencode/fake-opencode.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"
import { testRandom } from "../../support/test-random.ts"

const PASSES = runs(20)
const AT_ONCE = 4
const SHARED = ["shared-0.txt", "shared-1.txt", "shared-2.txt"]

/** The project's files as the user sees them, without git's and the bundle's own. */
const visible = (root: string) =>
  Object.fromEntries(Object.entries(snapshotTree(root)).filter(([path]) => !/^\.(?:git|opencode)(?:\/|$)/.test(path)))

const openProject = () => {
  const root = temporaryFolder()
  mkdirSync(join(root, ".opencode"))
  writeFileSync(
    join(root, ".opencode", "pass-over.json"),
    JSON.stringify({ defaults: { retry_delay_ms: 1, max_retries: 1, max_passes_per_session: 1_000 } }),
  )
  for (const path of SHARED) writeFileSync(join(root, path), `${path}\n`)
  const git = (...args: string[]) =>
    spawnSync("git", ["-C", root, "-c", "user.name=T", "-c", "user.email=t@example.invalid", ...args])
  git("init", "-q")
  git("add", "-A")
  git("commit", "-q", "-m", "start")
  return root
}

const FAULTS = [
  "none",
  "none",
  "crash",
  "crash-late",
  "prose",
  "wrong-return",
  "hang",
  "create-fails",
  "messages-fail",
] as const

test(promised(
  "pass-over.G2",
  "random passes under random faults lose nothing and change nothing that was not applied",
), async () => {
  const random = testRandom()
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
  const root = openProject()
  let failing = new Set<string>()
  const coder = async ({ text, signal, write, giveBack, say }: AgentTurn): Promise<void> => {
    const [, number = "", fault = ""] = /WORK (\d+) (\S+)/.exec(text) ?? []
    const shared = SHARED[Number(number) % SHARED.length] ?? ""
    if (fault === "crash") throw new Error("the model fails")
    await write(shared, `changed by ${number}\n`)
    await write(`own/${number}.txt`, `made by ${number}\n`)
    if (fault === "crash-late") throw new Error("the model fails")
    if (fault === "hang" && !signal.aborted)
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()))
    if (fault === "prose") return say("I am done, more or less.")
    for (const _ of [1, 2, 3]) if (fault === "wrong-return") await giveBack({ status: "great" })
    await giveBack({ status: "completed", summary: `Work ${number}` })
  }
  const opencode = createFakeOpenCode({
    directory: root,
    agents: { coder },
    faults: (call) => (failing.has(call) ? "InjectedFault" : undefined),
  })
  const log = createRecordedLog()
  const { input } = opencode
  const services = createServices({ input, projectRoot: root, log })
  const feature = createPassOverFeature({ input, projectRoot: root, root }, services, log)
  opencode.connect(feature)
  const expected = new Map(SHARED.map((path) => [path, readFileSync(join(root, path), "utf8")]))

  const passOne = async (number: number): Promise<{ id: string; answer: string }> => {
    const fault = pick(FAULTS)
    const abort = new AbortController()
    if (fault === "create-fails") failing = new Set(["create"])
    if (fault === "messages-fail") failing = new Set(["messages"])
    if (fault === "hang") setTimeout(() => abort.abort(), 300)
    const context = fakeToolContext(opencode.rootID, abort.signal)
    const answer = await feature.pass(
      { subagent: "coder", objective: `WORK ${number} ${fault}`, reason: "random", messages: 0 },
      context,
    )
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
        const found = readFileSync(join(root, path), "utf8")
        expect(found).toMatch(/^(?:changed|made) by \d+\n$/)
        expected.set(path, found)
      }
    }
    const found = Object.keys(visible(root)).filter((path) => path !== "own")
    expect(Object.fromEntries(found.map((path) => [path, readFileSync(join(root, path), "utf8")]))).toEqual(
      Object.fromEntries(expected),
    )
  }

  // The result arrives at the return, and the turn ends after it.
  await expect.poll(() => opencode.isBusy()).toBe(false)
  const passes = join(root, ".opencode", "state", "pass-over")
  const ids = readdirSync(passes).filter((name) => name.startsWith("pass_"))
  const states = ids.map((id) => JSON.parse(readFileSync(join(passes, id, "pass.json"), "utf8")).state.state)
  expect(states.filter((state) => !["returned", "applied", "rejected", "cancelled"].includes(state))).toEqual([])
  expect(ids.filter((id) => existsSync(join(passes, id, "copy")))).toEqual([])
  const audit = readdirSync(join(root, ".opencode", "pass-over-logs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => readFileSync(join(root, ".opencode", "pass-over-logs", name), "utf8"))
    .join("")
  expect(ids.filter((id) => !audit.includes(id))).toEqual([])
  expect(log.lines.filter(({ level }) => level === "error")).toEqual([])
  await feature.stop()
  const children = spawnSync("ps", ["-o", "pid=,args=", "--ppid", String(process.pid)], { encoding: "utf8" }).stdout
  expect(children.split("\n").filter((line) => /\bgit\b/.test(line))).toEqual([])
}, 120_000)
