import { existsSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { createDeferred, withDeadline } from "../../../.opencode/baton/host/async.ts"
import { SILENT } from "../../../.opencode/baton/host/log.ts"
import { createPersonsPasses } from "../../../.opencode/baton/pass-over/audit/person.ts"
import { queryAudit } from "../../../.opencode/baton/pass-over/audit/query.ts"
import { promised } from "../../requirements.ts"
import { type AgentTurn, type Faults, fakeToolContext } from "../../support/opencode/fake-opencode.ts"
import { DONE, openFeaturePasses, speakOn, writing } from "../../support/opencode/feature-passes.ts"
import { readIn } from "../../support/opencode/pass-project.ts"

test.each([
  ["completed", true],
  ["partial", false],
  ["failed", false],
])(
  promised("pass-over.B2", "with auto_apply and a return that says %s, what a child changed goes in: %s"),
  async (status, goesIn) => {
    const passes = openFeaturePasses({
      defaults: { auto_apply: true },
      coder: writing({ "made.txt": "made\n" }, { status, summary: "So far." }),
    })
    const answer = await passes.pass()
    expect(existsSync(join(passes.root, "made.txt"))).toBe(goesIn)
    expect(answer).toContain(goesIn ? "in the worktree (applied)" : "1 of them are pending")
  },
)

test(promised("pass-over.D2", "a subagent whose session is deleted works in its sandbox until then"), async () => {
  const passes = openFeaturePasses({
    coder: async (turn) => {
      await passes.feature.receive({ type: "session.deleted", properties: { info: { id: turn.sessionID } } })
      await turn.write("late.txt", "late\n").catch(() => {})
      await speakOn(turn)
    },
  })
  expect(await passes.pass()).toContain("coder → aborted")
  expect(existsSync(join(passes.root, "late.txt"))).toBe(false)
})

test(promised("pass-over.E4", "a pass that cannot be begun leaves neither its files nor its lock"), async () => {
  let isBroken = true
  const passes = openFeaturePasses({
    coder: writing({}),
    faults: (call) => (isBroken && call === "create" ? "InjectedFault" : undefined),
  })
  expect(await passes.pass()).toContain("E011")
  expect(readdirSync(join(passes.folder, passes.id()))).not.toContain("copy")
  expect(readdirSync(join(passes.folder, passes.id()))).not.toContain("work.lock")
  isBroken = false
  expect(await passes.pass()).toContain("coder → completed")
  expect(readIn(passes.root, "a.txt")).toBe("a\n")
})

test(promised(["pass-over.A3", "pass-over.C3"], "applying a rename asks for the removed file, too"), async () => {
  const passes = openFeaturePasses({
    coder: async ({ write, remove, giveBack }) => {
      await remove("a.txt")
      await write("moved/a.txt", "a\n")
      await giveBack(DONE)
    },
  })
  expect(await passes.pass()).toContain("renamed moved/a.txt (from a.txt)")
  const asked: string[][] = []
  const ask = async ({ patterns }: { patterns: string[] }) => void asked.push(patterns)
  await passes.apply({}, { ...fakeToolContext(passes.opencode.rootID), ask })
  expect(asked).toEqual([["moved/a.txt", "a.txt"]])
})

describe("a result that the user has not released", () => {
  const SECRET = "what only the user may release"

  /** A project whose user is asked before a result is returned; `user.says` is the answer. */
  const openAsking = () => {
    const passes = openFeaturePasses({
      defaults: { auto_return: false },
      coder: writing({ "made.txt": "made\n" }, { status: "completed", summary: SECRET }),
    })
    const user = { says: "no", asked: 0 }
    const context = () => ({
      ...fakeToolContext(passes.opencode.rootID),
      ask: async ({ permission }: { permission: string }) => {
        if (!permission.startsWith("pass_over_result ")) return
        user.asked++
        if (user.says === "no") throw new Error("rejected")
      },
    })
    return { ...passes, user, context }
  }

  test(promised("pass-over.A6", "a held result comes back by no other tool, until the user says yes"), async () => {
    const { pass, status, apply, context, user } = openAsking()
    for (const answer of [await pass({}, context()), await status(context()), await apply({}, context())]) {
      expect(answer).toContain("the user has not approved the result of coder")
      expect(answer).not.toContain(SECRET)
    }
    user.says = "yes"
    expect(await status(context())).toContain(SECRET)
    expect(user.asked).toBe(4)
    user.says = "no"
    expect(await status(context())).toContain(SECRET)
    expect(await apply({}, context())).toContain("applied")
  })

  test(
    promised(
      ["pass-over.A4", "pass-over.A6"],
      "a result that the user has not released is announced without its content, for its status",
    ),
    async () => {
      const { pass, status, context, user, told, reaches } = openAsking()
      await pass({ async: true }, context())
      const id = await reaches("returned")
      await expect.poll(told).toContain(`[result of ${id}]`)
      expect(told()).not.toContain(SECRET)
      expect(told()).toContain("pass_over_status")
      expect(user.asked).toBe(0)
      user.says = "yes"
      expect(await status(context())).toContain(SECRET)
    },
  )
})

describe("a result that is not waited for, and whose files are decided on", () => {
  /** OpenCode does not tell that the root session is idle. */
  const isNeverIdle: Faults = (call) => (call === "status" ? "InjectedFault" : undefined)
  const openWriting = (defaults: Record<string, unknown> = {}, faults: Faults = () => undefined) =>
    openFeaturePasses({ defaults, faults, coder: writing({ "made.txt": "made\n" }) })

  test(promised("pass-over.A4", "a result whose files the policy decided on is announced like any other"), async () => {
    const { pass, reaches, told } = openWriting({ auto_apply: true })
    await pass({ async: true })
    const id = await reaches("applied")
    await expect.poll(told).toContain(`[result of ${id}]`)
    expect(told()).toContain("made.txt")
  })

  test(
    promised("pass-over.A4", "a result that its originator decided on before it was told is not announced behind that"),
    async () => {
      const { apply, pass, reaches, recordOf } = openWriting({}, isNeverIdle)
      await pass({ async: true })
      const id = await reaches("returned")
      expect(await apply()).toContain("applied")
      expect(recordOf(id).announced_at).not.toBeNull()
    },
  )

  test(
    promised(
      "pass-over.A4",
      "a result that a person decided on before its originator was told is announced nevertheless",
    ),
    async () => {
      const { feature, pass, reaches, recordOf, root, told, opencode } = openWriting({}, isNeverIdle)
      await pass({ async: true })
      const id = await reaches("returned")
      const decided = await createPersonsPasses(root, SILENT).reject(id, { files: undefined })
      expect(decided).toMatchObject({ isDone: true })
      expect(recordOf(id).state.state).toBe("rejected")
      await feature.receive({ type: "session.idle", properties: { sessionID: opencode.rootID } })
      await expect.poll(told).toContain(`[result of ${id}]`)
    },
  )
})

test(promised("pass-over.A9", "a stored result that is for another agent is not given"), async () => {
  const passes = openFeaturePasses({ coder: writing({ "made.txt": "made\n" }) })
  await passes.pass()
  const record = passes.recordOf(passes.id())
  const foreign = { ...record, output: { ...record.output, return_to: "alice" } }
  writeFileSync(join(passes.folder, passes.id(), "pass.json"), JSON.stringify(foreign))
  for (const call of [passes.status, passes.apply, passes.reject])
    expect(await call()).toContain("E020 RETURN_CONTEXT_LOST: The result of")
})

describe("a subagent that has returned and speaks on", () => {
  test(promised("pass-over.C3", "a subagent that has returned may use no tool any more"), async () => {
    const refusals: string[] = []
    const passes = openFeaturePasses({
      coder: async (turn) => {
        await turn.giveBack(DONE)
        await passes.reaches("returned")
        await turn.use("bash", { command: "true" }).catch((error: unknown) => refusals.push(String(error)))
      },
    })
    await passes.pass()
    await expect.poll(() => refusals).toEqual([expect.stringContaining("the pass is over")])
  })

  test(
    promised(
      "pass-over.G3",
      "a subagent that has returned and speaks on is asked for its closing words at once, whatever its originator does",
    ),
    async () => {
      let asked: unknown = "not yet"
      const passes = openFeaturePasses({
        coder: async (turn) => {
          await turn.giveBack(DONE)
          asked = await withDeadline(passes.feature.offerTools(turn.sessionID, []), 5_000)
        },
      })
      await passes.pass({ async: true })
      await expect.poll(() => asked).toMatchObject({ kind: "done" })
    },
  )

  test(promised("pass-over.D2", "a returned child is ended by an abort of any session above it"), async () => {
    const passes = openFeaturePasses({
      coder: async (turn) => {
        await passes.passOn(turn)
        await turn.giveBack(DONE)
      },
      second: async (turn) => {
        await turn.giveBack(DONE)
        await speakOn(turn)
      },
    })
    await passes.pass()
    expect(passes.opencode.isBusy()).toBe(true)
    const properties = { sessionID: passes.opencode.rootID, error: { name: "MessageAbortedError" } }
    await passes.feature.receive({ type: "session.error", properties })
    await expect.poll(() => passes.opencode.isBusy()).toBe(false)
  })
})

test(promised("pass-over.B1", "a subagent that runs another tool beside its return is waited for"), async () => {
  const [returned, end] = [createDeferred<void>(), createDeferred<void>()]
  const passes = openFeaturePasses({
    coder: async (turn) => {
      await turn.write("b.txt", "b\n")
      await turn.giveBack(DONE)
      returned.resolve()
      await end.promise
    },
  })
  const answer = passes.pass()
  // If it were idle, its return would have ended after its result.
  await returned.promise
  expect(passes.recordOf(passes.id()).state.state).toBe("waiting_for_return")
  end.resolve()
  expect(await answer).toContain("added b.txt")
})

const [ATTEMPT_MS, PASS_MS] = [600_000, 900_000]

/** A clock of a child's work that runs out when a test says so. */
const createClock = () => {
  const running = new Map<number, () => void>()
  return {
    startTimer: (ms: number, act: () => void) => {
      running.set(ms, act)
      return () => void running.delete(ms)
    },
    /** Lets the time of this length run out. */
    runOut: (ms: number): void => running.get(ms)?.(),
  }
}

test.each<[string, (turn: AgentTurn, runOut: (ms: number) => void) => Promise<void>, string]>([
  [
    "takes too long",
    (turn, runOut) => {
      runOut(ATTEMPT_MS)
      return speakOn(turn)
    },
    "E010",
  ],
  ["crashes", () => Promise.reject(new Error("no model")), "E011"],
])(
  promised(["pass-over.E5", "pass-over.E2"], "a subagent that %s is tried again, with fresh files"),
  async (_what, fail, code) => {
    let attempts = 0
    const { startTimer, runOut } = createClock()
    const passes = openFeaturePasses({
      defaults: { timeout_ms: ATTEMPT_MS, on_timeout: "stop", max_retries: 2 },
      startTimer,
      coder: async (turn) => {
        attempts++
        if (attempts > 1) return writing({ "made.txt": "made\n" })(turn)
        await turn.write("half.txt", "half\n")
        return fail(turn, runOut)
      },
    })
    const answer = await passes.pass()
    expect(answer).toContain("coder → completed")
    expect(answer).toContain("Changed files (1):\n- added made.txt")
    const [failure] = (await queryAudit(passes.root)).passes[0]?.history.filter(({ error }) => error) ?? []
    expect(failure).toMatchObject({ event: "attempt_failed", error: { code } })
  },
)

test(promised("pass-over.E5", "attempts that take too long end with max_time_ms, their work is kept"), async () => {
  let attempts = 0
  const { startTimer, runOut } = createClock()
  const passes = openFeaturePasses({
    defaults: { timeout_ms: ATTEMPT_MS, on_timeout: "stop", max_retries: 10, max_time_ms: PASS_MS },
    startTimer,
    coder: async (turn) => {
      await turn.write("half.txt", "half\n")
      runOut(++attempts === 1 ? ATTEMPT_MS : PASS_MS)
      await speakOn(turn)
    },
  })
  const answer = await passes.pass()
  for (const part of ["coder → timeout", "It worked for max_time_ms", "added half.txt"]) expect(answer).toContain(part)
})

test(promised("pass-over.C7", "an agent whose own pass has timed out passes nothing on"), async () => {
  const answered = createDeferred<string>()
  const passes = openFeaturePasses({
    defaults: { timeout_ms: 1_000, on_timeout: "continue" },
    coder: async (turn) => {
      await passes.reaches("timed_out")
      answered.resolve(await passes.passOn(turn))
      await turn.giveBack(DONE)
    },
    second: writing({}),
  })
  expect(await passes.pass()).toContain("status timeout")
  expect(await answered.promise).toContain("E010 SUBAGENT_TIMEOUT: The pass that you work on has timed out")
})
