import { existsSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import { promised } from "../../requirements.ts"
import { fakeToolContext } from "../../support/opencode/fake-opencode.ts"
import { DONE, openFeaturePasses, speakOn, writing } from "../../support/opencode/feature-passes.ts"
import { userMessage } from "../../support/opencode/stored-messages.ts"

describe("a pass made from within a pass", () => {
  test(
    promised(
      ["pass-over.B2", "pass-over.C3"],
      "a pass made from within a pass is waited for: no session works after its pass",
    ),
    async () => {
      let inner = ""
      const passes = openFeaturePasses({
        coder: async (turn) => {
          inner = await passes.passOn(turn, { async: true })
          await turn.giveBack(DONE)
        },
        second: writing({ "inner.txt": "inner\n" }),
      })
      expect(await passes.pass()).toContain("coder → completed")
      expect(inner).toContain("second → completed")
      expect(inner).toContain("added inner.txt")
      await expect.poll(() => passes.opencode.isBusy()).toBe(false)
    },
  )

  test(promised("pass-over.B2", "a nested pass is stopped at its time-out, whatever on_timeout says"), async () => {
    let inner = ""
    const passes = openFeaturePasses({
      defaults: { on_timeout: "continue" },
      subagents: { second: { timeout_ms: 1_000 } },
      coder: async (turn) => {
        inner = await passes.passOn(turn)
        await turn.giveBack(DONE)
      },
      second: speakOn,
    })
    await passes.pass()
    expect(inner).toContain("second → timeout")
  })
})

test(promised(["pass-over.B2", "pass-over.C3"], "a child that does not end when told may use no tool"), async () => {
  const [held, refused] = [createDeferred<void>(), createDeferred<unknown>()]
  const passes = openFeaturePasses({
    defaults: { timeout_ms: 1_000, on_timeout: "stop" },
    coder: async ({ write }) => {
      await held.promise
      await write("escaped.txt", "out\n").then(refused.resolve, refused.resolve)
    },
  })
  expect(await passes.pass()).toContain("coder → timeout")
  held.resolve()
  expect(String(await refused.promise)).toContain("the pass is over")
  expect(existsSync(join(passes.root, "escaped.txt"))).toBe(false)
}, 20_000)

test(promised("pass-over.B2", "a child's editing tool writes through no link out of its sandbox"), async () => {
  const refused: string[] = []
  const passes = openFeaturePasses({
    coder: async ({ use, giveBack }) => {
      const calls: [string, Record<string, unknown>][] = [
        ["edit", { filePath: join(passes.root, "config/x") }],
        ["write", { filePath: "nowhere" }],
        ["apply_patch", { patchText: "*** Begin Patch\n*** Add File: config/deep/y\n+y\n*** End Patch" }],
        ["write", { filePath: "near/y" }],
        ["read", { filePath: "config/x" }],
      ]
      for (const [tool, args] of calls)
        await use(tool, args).catch((error: unknown) => refused.push(`${tool}: ${String(error)}`))
      await giveBack(DONE)
    },
    files: { "real/x": "x\n" },
  })
  symlinkSync(join(passes.root, "real"), join(passes.root, "config"))
  symlinkSync(join(passes.root, "real", "later"), join(passes.root, "nowhere"))
  symlinkSync("real", join(passes.root, "near"))
  await passes.pass()
  expect(refused.map((text) => text.split(":")[0])).toEqual(["edit", "write", "apply_patch"])
  for (const text of refused) expect(text).toContain("leads out of your sandbox")
})

test(promised("pass-over.B3", "a pass within a pass is given the files as its originator has them"), async () => {
  const orders: string[] = []
  const passes = openFeaturePasses({
    coder: async (turn) => {
      await turn.write("a.txt", "changed by the coder\n")
      for (const file of ["a.txt", join(passes.root, "a.txt")]) await passes.passOn(turn, { files: [file] })
      await turn.giveBack(DONE)
    },
    second: async ({ context, giveBack }) => {
      orders.push(context)
      await giveBack(DONE)
    },
  })
  await passes.pass()
  expect(orders).toHaveLength(2)
  for (const order of orders) expect(order).toContain("### a.txt\n```\nchanged by the coder\n")
})

test(promised(["pass-over.C2", "pass-over.E1"], "a policy gone since OpenCode's start allows nothing"), async () => {
  const passes = openFeaturePasses({ coder: writing({}) })
  rmSync(passes.policyPath)
  expect(await passes.pass()).toContain("E030")
})

test(promised("pass-over.D3", "a call that OpenCode keeps waiting does not hold up the other ones"), async () => {
  const answered = createDeferred<undefined>()
  let calls = 0
  const passes = openFeaturePasses({
    coder: writing({}),
    faults: (call) => (call === "agents" && calls++ === 0 ? answered.promise : undefined),
  })
  const first = passes.pass()
  expect(await passes.pass()).toContain("coder → completed")
  answered.resolve(undefined)
  expect(await first).toContain("coder → completed")
})

test(promised("pass-over.D3", "a first pass does not wait for the recovery of earlier processes' passes"), async () => {
  let recovering: "no" | "next" | "now" = "no"
  const answered = createDeferred<undefined>()
  const passes = openFeaturePasses({
    coder: writing({}),
    faults: (call) => {
      if (call !== "messages" || recovering !== "next") return undefined
      recovering = "now"
      return answered.promise
    },
  })
  await passes.pass()
  // A pass whose process is gone, and for whose session OpenCode does not answer.
  const id = passes.id()
  const record = { ...passes.recordOf(id), state: { state: "waiting_for_return" }, output: null }
  writeFileSync(join(passes.folder, id, "pass.json"), JSON.stringify(record))
  writeFileSync(join(passes.folder, "unfinished", id), "")
  recovering = "next"
  const restarted = passes.start()
  await expect.poll(() => recovering).toBe("now")
  const args = { subagent: "coder", objective: "Work", reason: "test" }
  const { text } = await restarted.pass(args, fakeToolContext(passes.opencode.rootID))
  expect(text).toContain("coder → completed")
  answered.resolve(undefined)
})

test(promised("pass-over.A8", "a refused call offers no tools to decide on results; a first pass does"), async () => {
  const passes = openFeaturePasses({ coder: writing({}) })
  const offered = async (): Promise<boolean> => {
    const message = userMessage([], "msg_1")
    const change = await passes.feature.offerTools(passes.opencode.rootID, [message])
    change?.()
    return !JSON.stringify(message).includes("pass_over_apply")
  }
  expect(await passes.pass({ subagent: "nobody" })).toContain("E001")
  expect(await offered()).toBe(false)
  await passes.pass()
  expect(await offered()).toBe(true)
})
