import { beforeEach, describe, expect, test, vi } from "vitest"
import { type ClaimsMode, createTaskClaims, RENEW_EVERY_MS } from "../../../.opencode/baton/compaction/claims.ts"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import { untrusted } from "../../../.opencode/baton/host/quoted.ts"
import type { ClaimOutcome } from "../../../.opencode/baton/ledger/ledger.ts"
import type { SessionTask } from "../../../.opencode/baton/task/registry.ts"
import { promised } from "../../requirements.ts"
import { BINDING, createRecordedLog } from "../../support/unit.ts"

const TASK = BINDING.taskID
const HELD = { kind: "held", summary: "ada (session ses_2 on host in /project) since 2026-02-09 22:17 UTC" } as const
const DOWN = { kind: "unavailable", reason: "database is locked" } as const
/** The hook of a tool has as long. */
const GATE_MS = 3_000

const NOTHING_SPENT = { tools: 0, tokens: 0, cost: 0 }

/** A ledger that answers the first claims as given and then grants them. */
const setUp = (
  answers: (ClaimOutcome | Promise<ClaimOutcome>)[] = [],
  setting: ClaimsMode = "shared",
  { idle = "", isUnattended = false } = {},
) => {
  const [calls, told] = [[] as string[], [] as string[]]
  const log = createRecordedLog()
  const [released, reopened] = [new Set<string>(), new Set<string>()]
  const world = { setting, answers: true, idle }
  const claims = createTaskClaims({
    ledger: {
      claimTask: async (id, sessionID) => {
        calls.push(`claim ${id} ${sessionID}`)
        for (const ended of [released, reopened]) ended.delete(sessionID)
        return answers.shift() ?? { kind: "claimed" }
      },
      renewClaims: async (sessionIDs) => {
        calls.push(`renew ${sessionIDs.join(" ")}`)
        if (!world.answers) return undefined
        const kept = sessionIDs.filter((id) => !released.has(id))
        return new Map(kept.map((id) => [id, reopened.has(id) ? "reopened" : "claimed"]))
      },
      releaseClaims: async (sessionIDs) => void calls.push(`release ${sessionIDs.join(" ")}`),
      endRuns: async (ends) => void calls.push(`end ${ends.map(({ session }) => session).join(" ")}`),
      endRunNow: ({ task, session }, isBegun) => void calls.push(`end ${task} ${session}${isBegun ? " begun" : ""}`),
      readTask: async (id) => {
        const claim = { session: "ses_2", isOwn: false, summary: untrusted(HELD.summary) }
        const task = {
          id,
          title: untrusted("T"),
          status: untrusted("open"),
          description: untrusted(""),
          logs: [],
          labels: [],
          claim,
        }
        return { kind: "found", task }
      },
    },
    isIdleOn: async (taskID, sessionID) => taskID === TASK && sessionID === world.idle,
    tasks: { owner: async (own) => (own.origin === "parent" ? { ...BINDING, sessionID: "ses_parent" } : own) },
    mode: async () => world.setting,
    endsOf: (bindings) =>
      bindings.map(({ sessionID: session, taskID: task }) => ({
        session,
        task,
        kind: "idle",
        detail: "",
        ...NOTHING_SPENT,
      })),
    isUnattended,
    tell: async (sessionID, taskID, summary) => void told.push(`${sessionID} ${taskID} ${summary}`),
    log,
  })
  const releaseFromOutside = (id: string) => void released.add(id)
  return { claims, calls, told, log, world, releaseFromOutside, reopenTask: (id: string) => void reopened.add(id) }
}

const first: SessionTask = BINDING

beforeEach(() => void vi.useFakeTimers())

describe("a session's claim", () => {
  test(
    promised("claim.B1", "a session's claim is made once, at the first tool, and renewed until the session ends"),
    async () => {
      const { claims, calls } = setUp()
      for (const tool of ["read", "edit", "bash"]) expect(await claims.toolStarting(first, tool)).toBeUndefined()
      await vi.advanceTimersByTimeAsync(2 * RENEW_EVERY_MS)
      await claims.forget("ses_1")
      await vi.advanceTimersByTimeAsync(RENEW_EVERY_MS)
      expect(calls).toEqual([`claim ${TASK} ses_1`, "renew ses_1", "renew ses_1", "end ses_1"])
    },
  )

  test(
    promised("queue.A6", "a claim goes from an idle session to the one that the user speaks to, not from one at work"),
    async () => {
      for (const idle of ["ses_2", ""]) {
        const { claims, calls, told } = setUp([HELD, ...(idle === "" ? [HELD] : [])], "exclusive", { idle })
        const refusal = await claims.toolStarting(first, "edit")
        const isTaken = idle !== ""
        expect(calls.includes("release ses_2")).toBe(isTaken)
        expect(refusal === undefined, refusal).toBe(isTaken)
        expect(told).toHaveLength(isTaken ? 0 : 1)
      }
    },
  )

  test(
    promised("queue.A6", "a claim is not taken from an idle session by one that is idle, too, until its user speaks"),
    async () => {
      const { claims, calls, world } = setUp([HELD, HELD, HELD, HELD])
      await claims.toolStarting(first, "read")
      await vi.advanceTimersByTimeAsync(1)
      world.idle = "ses_2"
      await vi.advanceTimersByTimeAsync(2 * RENEW_EVERY_MS)
      expect(calls).toEqual([`claim ${TASK} ses_1`, `claim ${TASK} ses_1`, `claim ${TASK} ses_1`])
      await claims.userArrived("ses_1")
      await claims.toolStarting(first, "read")
      await vi.advanceTimersByTimeAsync(1)
      expect(calls.slice(3)).toEqual([`claim ${TASK} ses_1`, "release ses_2", `claim ${TASK} ses_1`])
    },
  )

  test(promised("claim.B1", "a claim is not made by a handoff"), async () => {
    const { claims, calls } = setUp()
    await claims.toolStarting(first, "handoff_session")
    expect(calls).toEqual([])
  })

  test(
    promised(
      "queue.A1",
      "a session's claim begins with the first message where nobody is at the session, and ends with its turn",
    ),
    async () => {
      const asked = createDeferred<ClaimOutcome>()
      const { claims, calls, world } = setUp([asked.promise], "shared", { isUnattended: true })
      await claims.runBegins(first)
      await vi.advanceTimersByTimeAsync(0)
      expect(calls).toEqual([`claim ${TASK} ses_1`])
      claims.runEnds(first)
      expect(calls.at(-1), "its claim is still on its way").toBe(`end ${TASK} ses_1 begun`)
      asked.resolve({ kind: "claimed" })
      await claims.stop()
      world.setting = "off"
      await claims.runBegins(first)
      claims.runEnds(first)
      expect(calls.slice(2), "without claims there is a run, too").toEqual([`end ${TASK} ses_1`])
    },
  )

  test(
    promised("claim.B1", "a session's claim moves with the session to another task, and all are released at the end"),
    async () => {
      const { claims, calls } = setUp()
      await claims.toolStarting(first, "read")
      await claims.toolStarting({ ...first, taskID: "ts-000002" }, "read")
      await claims.toolStarting({ ...first, sessionID: "ses_2" }, "read")
      await claims.stop()
      await vi.advanceTimersByTimeAsync(RENEW_EVERY_MS)
      expect(calls.slice(0, 1)).toEqual([`claim ${TASK} ses_1`])
      const others = ["claim ts-000002 ses_1", `claim ${TASK} ses_2`, "end ses_1", "end ses_1 ses_2"]
      expect(calls.slice(1).toSorted()).toEqual(others)
    },
  )

  test(
    promised("claim.B1", "a task that was released from outside is claimed again by the user's next message"),
    async () => {
      const { claims, calls, log, releaseFromOutside } = setUp()
      await claims.toolStarting(first, "read")
      releaseFromOutside("ses_1")
      await vi.advanceTimersByTimeAsync(RENEW_EVERY_MS)
      await claims.toolStarting(first, "read")
      await vi.advanceTimersByTimeAsync(RENEW_EVERY_MS)
      expect(calls).toEqual([`claim ${TASK} ses_1`, "renew ses_1"])
      expect(log.lines.map(({ message }) => message)).toContain("the claim was released from outside")
      await claims.userArrived("ses_1")
      await claims.toolStarting(first, "read")
      expect(calls.at(-1)).toBe(`claim ${TASK} ses_1`)
      releaseFromOutside("ses_1")
      await claims.userArrived("ses_1")
      await claims.toolStarting(first, "read")
      expect(calls.slice(-2), "also before the next renewal").toEqual(["renew ses_1", `claim ${TASK} ses_1`])
    },
  )

  test(promised("claim.B1", "a claim on a task that is opened again is made again by the next change"), async () => {
    const { claims, calls, reopenTask, world } = setUp([], "exclusive")
    await claims.toolStarting(first, "edit")
    reopenTask("ses_1")
    for (const tool of ["read", "edit", "edit"]) expect(await claims.toolStarting(first, tool)).toBeUndefined()
    const [claim, renew] = [`claim ${TASK} ses_1`, "renew ses_1"]
    expect(calls).toEqual([claim, renew, renew, claim, renew])
    reopenTask("ses_1")
    world.answers = false
    expect(await claims.toolStarting(first, "edit"), "the ledger does not answer").toBeUndefined()
    world.answers = true
    await claims.toolStarting(first, "edit")
    expect(calls.at(-1)).toBe(claim)
  })

  test(promised("claim.B1", "a claim is made again also where claims are shared, and only by a tool"), async () => {
    const { claims, calls, reopenTask } = setUp()
    await claims.toolStarting(first, "read")
    for (const noticed of [() => vi.advanceTimersByTimeAsync(2 * RENEW_EVERY_MS), () => claims.userArrived("ses_1")]) {
      reopenTask("ses_1")
      await noticed()
      await claims.userArrived("ses_1")
      expect(calls.splice(0)).toEqual([`claim ${TASK} ses_1`, "renew ses_1"])
      await claims.toolStarting(first, "read")
    }
    await claims.toolStarting(first, "read")
    await claims.stop()
    expect(calls).toEqual([`claim ${TASK} ses_1`, "end ses_1"])
  })

  test(
    promised("claim.B1", "a claim that the ledger did not take is tried again, and the session works on"),
    async () => {
      const { claims, calls, log } = setUp([DOWN, DOWN], "exclusive")
      expect(await claims.toolStarting(first, "edit")).toBeUndefined()
      await vi.advanceTimersByTimeAsync(RENEW_EVERY_MS)
      expect(calls).toHaveLength(3)
      expect(log.lines.filter(({ level }) => level === "warn")).toHaveLength(1)
      expect(await claims.toolStarting(first, "edit")).toBeUndefined()
    },
  )

  test(promised("claim.B1", "a session's claim is kept while the ledger does not answer"), async () => {
    const { claims, calls, world } = setUp([], "exclusive")
    await claims.toolStarting(first, "read")
    world.answers = false
    await vi.advanceTimersByTimeAsync(RENEW_EVERY_MS)
    expect(await claims.toolStarting(first, "edit")).toBeUndefined()
    expect(calls.filter((call) => call.startsWith("claim"))).toHaveLength(1)
  })

  test(promised("claim.B1", "a claim on a task that is unknown or closed is not asked for at every tool"), async () => {
    const { claims, calls } = setUp([{ kind: "refused", reason: "item not found" }], "exclusive")
    for (const tool of ["edit", "write"]) expect(await claims.toolStarting(first, tool)).toBeUndefined()
    await vi.advanceTimersByTimeAsync(RENEW_EVERY_MS)
    expect(calls).toEqual([`claim ${TASK} ses_1`])
  })
})

describe("another's claim", () => {
  test(
    promised("claim.B2", "another's claim is told once, refuses nothing when shared, and is taken over when it ends"),
    async () => {
      const { claims, calls, told } = setUp([HELD, HELD])
      for (const tool of ["edit", "write"]) expect(await claims.toolStarting(first, tool)).toBeUndefined()
      await vi.advanceTimersByTimeAsync(2 * RENEW_EVERY_MS)
      expect(told).toEqual([`ses_1 ${TASK} ${HELD.summary}`])
      expect(calls).toHaveLength(3)
      await vi.advanceTimersByTimeAsync(RENEW_EVERY_MS)
      expect(calls.at(-1)).toBe("renew ses_1")
    },
  )

  test(
    promised("claim.B2", "another's claim refuses tools that change files when exclusive, and says how to go on"),
    async () => {
      const { claims, world } = setUp([HELD, HELD, HELD, HELD], "exclusive")
      for (const tool of ["edit", "apply_patch"]) {
        const refusal = await claims.toolStarting(first, tool)
        expect(refusal).toContain(HELD.summary)
        for (const way of [`prog release ${TASK}`, "another task", '"claims": "shared"']) expect(refusal).toContain(way)
      }
      for (const tool of ["bash", "read", "task"]) expect(await claims.toolStarting(first, tool)).toBeUndefined()
      world.setting = "shared"
      expect(await claims.toolStarting(first, "edit")).toBeUndefined()
    },
  )

  test(promised("claim.B2", "another's claim refuses changes also while the ledger does not answer"), async () => {
    const { claims, told } = setUp([HELD, DOWN, DOWN, HELD], "exclusive")
    await claims.toolStarting(first, "read")
    expect(await claims.toolStarting(first, "edit")).toContain(HELD.summary)
    await vi.advanceTimersByTimeAsync(RENEW_EVERY_MS)
    expect(await claims.toolStarting(first, "edit")).toContain(HELD.summary)
    expect(told).toHaveLength(1)
  })

  test(
    promised("claim.B2", "another's claim is still known after the user's message, while the ledger does not answer"),
    async () => {
      const { claims, told } = setUp([HELD, DOWN, { kind: "claimed" }], "exclusive")
      await claims.toolStarting(first, "read")
      await claims.userArrived("ses_1")
      expect(await claims.toolStarting(first, "edit")).toContain(HELD.summary)
      expect(told).toHaveLength(1)
      expect(await claims.toolStarting(first, "edit"), "the ledger answers again").toBeUndefined()
    },
  )

  test(
    promised("claim.B2", "another's claim refuses a change in time, however long an earlier call waits"),
    async () => {
      const { claims, calls } = setUp([HELD, new Promise(() => {})], "exclusive")
      await claims.toolStarting(first, "read")
      await claims.userArrived("ses_1")
      const refusal = claims.toolStarting(first, "edit")
      await vi.advanceTimersByTimeAsync(GATE_MS)
      expect(await refusal).toContain(HELD.summary)
      expect(calls).toHaveLength(2)
    },
  )

  test(
    promised("claim.B2", "another's claim is asked for again at the tool after the user's message, also when shared"),
    async () => {
      const { claims, calls } = setUp([HELD])
      await claims.toolStarting(first, "read")
      await claims.userArrived("ses_1")
      for (const tool of ["read", "bash"]) await claims.toolStarting(first, tool)
      await claims.stop()
      expect(calls).toEqual([`claim ${TASK} ses_1`, `claim ${TASK} ses_1`, "end ses_1"])
    },
  )

  test(
    promised("claim.B2", "another's claim is not taken over after a release, however long ago the user's message was"),
    async () => {
      const { claims, calls, releaseFromOutside } = setUp([HELD])
      await claims.toolStarting(first, "read")
      await claims.userArrived("ses_1")
      await vi.advanceTimersByTimeAsync(RENEW_EVERY_MS)
      releaseFromOutside("ses_1")
      await claims.toolStarting(first, "read")
      await vi.advanceTimersByTimeAsync(RENEW_EVERY_MS)
      expect(calls).toEqual([`claim ${TASK} ses_1`, `claim ${TASK} ses_1`, "renew ses_1"])
    },
  )

  test(
    promised("claim.B2", "another's claim on a task that is opened again refuses the session that was slower"),
    async () => {
      const { claims, told, reopenTask } = setUp([{ kind: "claimed" }, HELD, HELD], "exclusive")
      await claims.toolStarting(first, "edit")
      reopenTask("ses_1")
      for (let change = 0; change < 2; change++)
        expect(await claims.toolStarting(first, "edit")).toContain(HELD.summary)
      expect(told).toHaveLength(1)
    },
  )

  test(
    promised("claim.B2", "another's claim that took the task from a session refuses it the next change"),
    async () => {
      const { claims, releaseFromOutside } = setUp([], "exclusive")
      expect(await claims.toolStarting(first, "edit")).toBeUndefined()
      releaseFromOutside("ses_1")
      for (let change = 0; change < 2; change++)
        expect(await claims.toolStarting(first, "edit")).toMatch(/was released .*next message/)
      await claims.userArrived("ses_1")
      expect(await claims.toolStarting(first, "edit")).toBeUndefined()
    },
  )
})
