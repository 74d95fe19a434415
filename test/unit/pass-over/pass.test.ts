import { describe, expect, test } from "vitest"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import type { LivePass } from "../../../.opencode/baton/pass-over/child/active-passes.ts"
import { createPassOver, createTurns, type PassOverDeps } from "../../../.opencode/baton/pass-over/pass.ts"
import type { Prepared } from "../../../.opencode/baton/pass-over/prepare.ts"
import type { PassRecord } from "../../../.opencode/baton/pass-over/store/record.ts"
import { promised } from "../../requirements.ts"
import { fakeToolContext } from "../../support/opencode/fake-opencode.ts"
import { builtInPolicy, PASS_ID, passRecord, passRequest, workOutput } from "../../support/opencode/pass-over-values.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const preparedPass = (values: Partial<Prepared["policy"]["values"]>, request = passRequest()): Prepared => {
  const policy = builtInPolicy()
  return {
    request,
    policy: { ...policy, values: { ...policy.values, ...values } },
    subagent: { name: "audit", description: "", prompt: "", mode: "subagent", isHidden: false, permission: [] },
    originatorRules: [],
    model: undefined,
    cacheKey: null,
    audit: { enabled: true, retention_days: 1 },
    parentPass: undefined,
  }
}

/** A pass whose child ends on the test's command. */
const setUp = (prepared: Prepared, advance?: PassOverDeps["passes"]["advance"]) => {
  const ended = createDeferred<PassRecord>()
  const awaited: boolean[] = []
  const live = new Map<string, LivePass>()
  const record = passRecord({ state: { state: "timed_out" } })
  const begun = {
    kind: "begun",
    directory: "/p",
    copy: undefined,
    leftOut: [],
    made: Promise.resolve(undefined),
  } as const
  const passOver = createPassOver({
    prepare: async () => ({ kind: "ready", prepared }),
    passes: {
      begin: async () => record,
      advance: advance ?? (async () => ({ kind: "moved", record })),
      refuse: async () => {},
      attemptFailed: async () => {},
      announce: async () => true,
      release: async () => true,
    },
    store: { findAnswer: async () => undefined },
    worktree: {
      begin: async () => begun,
      withhold: async () => ({ kind: "changes", modifications: [], leftOut: [] }),
    },
    toPlace: async () => ({ directory: "/p", worktree: "/p", copy: "/c" }),
    owners: { claim: async () => {}, release: async () => {} },
    live,
    startWork: (pass) => {
      pass.finished = ended.promise
    },
    canGoOn: () => true,
    onEnd: async (_record, pass) => void awaited.push(pass.isAwaited),
    note: async () => {},
    release: async () => ({ kind: "released", note: undefined }),
    log: createRecordedLog(),
    now: () => new Date(0),
    endGraceMs: 10,
  })
  const call = { sessionID: "ses_root", messageID: "msg", agent: "build", args: {} } as never
  return {
    pass: () => passOver(call, fakeToolContext("ses_root")),
    end: () => ended.resolve(passRecord({ output: workOutput() })),
    awaited,
    live,
  }
}

describe("a child that is to be stopped at its time-out", () => {
  const prepared = preparedPass({ timeout_ms: 5, on_timeout: "stop" })

  test(
    promised(["pass-over.C4", "pass-over.A4"], "and takes longer than that is told of when it has ended"),
    async () => {
      const { pass, end, awaited, live } = setUp(prepared)
      const answer = await pass()
      expect(answer).toContain("is being ended")
      expect(answer).not.toContain("could not be stored")
      end()
      await expect.poll(() => live.has(PASS_ID)).toBe(false)
      expect(awaited).toEqual([false])
    },
  )

  test(promised("pass-over.A4", "and cannot be noted as such is told of all the same"), async () => {
    const { pass, end, awaited } = setUp(prepared, () => Promise.reject(new Error("ENOSPC")))
    await expect(pass()).rejects.toThrow("ENOSPC")
    end()
    await expect.poll(() => awaited).toEqual([false])
  })
})

test(promised("pass-over.A4", "an originator that wants no answer is not promised one"), async () => {
  const { pass } = setUp(preparedPass({}, passRequest({ return_required: false })))
  expect(await pass()).toContain("You are not told of its result")
})

test(promised("pass-over.D1", "passes that are made at the same time are counted one after the other"), async () => {
  const inTurn = createTurns()
  let made = 0
  const counted: number[] = []
  const failing = inTurn(() => Promise.reject(new Error("refused")))
  const rest = Array.from({ length: 3 }, () =>
    inTurn(async (next) => {
      counted.push(made)
      await Promise.resolve()
      made++
      next()
    }),
  )
  await expect(failing).rejects.toThrow("refused")
  await Promise.all(rest)
  expect(counted).toEqual([0, 1, 2])
})

test(
  promised("pass-over.D1", "a pass that waits for its copy or for a person does not keep the next one waiting"),
  async () => {
    const inTurn = createTurns()
    const person = createDeferred<string>()
    const long = inTurn((next) => {
      next()
      return person.promise
    })
    expect(await inTurn(async () => "short")).toBe("short")
    person.resolve("long")
    expect(await long).toBe("long")
  },
)
