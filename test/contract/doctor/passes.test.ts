import { once } from "node:events"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { passesCheck } from "../../../.opencode/baton/doctor/checks/features.ts"
import { findServing } from "../../../.opencode/baton/doctor/serving.ts"
import { createProcessRunner } from "../../../.opencode/baton/host/process.ts"
import { promised } from "../../requirements.ts"
import { shareBundle } from "../../support/files/bundle-project.ts"
import { NEWEST } from "../../support/opencode/opencode-binary.ts"
import { gitIn, spawnPass } from "../../support/opencode/pass-project.ts"

const PASS = "pass_20260101102030000_abcd"

const createProject = shareBundle()

const setUp = () => {
  const { project: root, baton } = createProject(NEWEST)
  writeFileSync(join(root, "a.txt"), "one\n")
  gitIn(root, "init", "-q")
  gitIn(root, "add", "a.txt")
  gitIn(root, "commit", "-q", "-m", "start")
  const run = createProcessRunner({ shell: undefined })
  const context = { root, home: root, environment: {}, scratch: root, run }
  const examine = async () => passesCheck.run({ ...context, serving: await findServing(context) })
  /** Starts a pass in a process and kills it at this step, as a crash would. */
  const cutOffAt = async (step: string): Promise<void> => {
    const child = spawnPass(NEWEST, root, PASS, { "a.txt": "two\n" })
    let said = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text
      if (said.includes(`${step}\n`)) child.kill("SIGKILL")
    })
    const [, signal] = await once(child, "exit")
    expect(signal, `it was over before ${step}: ${said}`).toBe("SIGKILL")
  }
  return { root, examine, baton, cutOffAt }
}

describe("doctor on passes", () => {
  test(promised("pass-over.G4", "doctor finds nothing on passes where there is nothing"), async () => {
    const { examine } = setUp()
    expect(await examine()).toEqual([
      { status: "ok", message: "no .opencode/pass-over.json: no agent passes work over; {} in it switches that on" },
    ])
  })

  test(
    promised(["pass-over.G4", "pass-over.C2"], "doctor on passes names a policy that is none, with its line"),
    async () => {
      const { root, examine } = setUp()
      writeFileSync(join(root, ".opencode", "pass-over.json"), '{\n  "default": {}\n}')
      const [found] = await examine()
      const parts = "defaults, pairs, subagents, audit_log (enabled, retention_days)"
      expect(found).toMatchObject({
        status: "broken",
        fix: expect.stringContaining(`may hold ${parts}; each of the first three, auto_return, `),
      })
      expect(found?.message).toMatch(/^\.opencode\/pass-over\.json:2 is not a policy, .*Unrecognized key: "default"/)
      writeFileSync(join(root, ".opencode", "pass-over.json"), '{ "audit_log": 1 }')
      expect(await examine()).toMatchObject([{ fix: "Mend .opencode/pass-over.json. Until then nothing is passed." }])
      writeFileSync(join(root, ".opencode", "pass-over.json"), "{}")
      expect(await examine()).toEqual([{ status: "ok", message: ".opencode/pass-over.json is in order" }])
    },
  )

  test(
    promised(["pass-over.B3", "pass-over.G4"], "doctor on passes names a pass that was cut off, and what mends it"),
    async () => {
      const { examine, baton, cutOffAt } = setUp()
      await cutOffAt("edited")
      const [, cut] = await examine()
      expect(cut).toMatchObject({ status: "warning", fix: expect.stringContaining(`baton passes restore ${PASS}`) })
      expect(cut?.message).toMatch(/^pass_20260101102030000_abcd, begun 20.*, was cut off while its subagent worked$/)
      const restored = baton("passes", "restore", PASS)
      expect([restored.status, restored.stderr]).toEqual([0, ""])
      expect(restored.stdout).toContain("1 changed file pending")
      expect((await examine()).slice(1)).toEqual([
        { status: "ok", message: "1 pass holds changes that wait to be applied or rejected" },
      ])
    },
  )

  test(promised("pass-over.G4", "doctor on passes names files of a pass that cannot be read"), async () => {
    const { root, examine } = setUp()
    const folder = join(root, ".opencode", "state", "pass-over", PASS, "files")
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, "sandbox.json"), "{")
    expect((await examine())[1]).toMatchObject({ status: "warning", message: expect.stringContaining(PASS) })
  })
})
