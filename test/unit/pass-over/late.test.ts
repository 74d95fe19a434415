import { describe, expect, test } from "vitest"
import type { LivePass } from "../../../.opencode/baton/pass-over/child/active-passes.ts"
import { createPassOver, type PassOverDeps } from "../../../.opencode/baton/pass-over/pass.ts"
import type { Prepared } from "../../../.opencode/baton/pass-over/prepare.ts"
import type { PassRecord } from "../../../.opencode/baton/pass-over/store/record.ts"
import { promised } from "../../requirements.ts"
import { fakeToolContext } from "../../support/opencode/fake-opencode.ts"
import { builtInPolicy, PASS_ID, passRecord, passRequest, workOutput } from "../../support/opencode/pass-over-values.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const CALL = { sessionID: "ses_root", messageID: "msg", agent: "build", args: {} } as never

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
const setUp = (prepared: Prepared, change: Partial<PassOverDeps> = {}) => {
  let end = (_record: PassRecord): void => {}
  const awaited: boolean[] = []
  const live = new Map<string, LivePass>()
  const record = passRecord({ state: { state: "timed_out" } })
  const moved = { kind: "moved", record } as const
  const passOver = createPassOver({
    prepare: async () => ({ kind: "ready", prepared }),
    passes: {
      begin: async () => record,
      advance: async () => moved,
      refuse: async () => {},
      attemptFailed: async () => {},
      announce: async () => true,
      release: async () => true,
    },
    store: { findAnswer: async () => undefined },
    worktree: {
      begin: async () => ({
        kind: "begun",
        directory: "/p",
        copy: undefined,
        leftOut: [],
        made: Promise.resolve(undefined),
      }),
      complete: async () => {},
      withhold: async () => ({ kind: "changes", modifications: [], leftOut: [] }),
    },
    toPlace: async () => ({ directory: "/p", worktree: "/p", copy: "/c" }),
    owners: { claim: async () => {}, release: async () => {} },
    live,
    startWork: (pass) => {
      pass.finished = new Promise((resolve) => {
        end = resolve
      })
    },
    canGoOn: () => true,
    onEnd: async (_record, pass) => void awaited.push(pass.isAwaited),
    note: async () => {},
    release: async () => ({ kind: "released", note: undefined }),
    log: createRecordedLog(),
    now: () => new Date(0),
    endGraceMs: 10,
    ...change,
  })
  return { passOver, end: (with_: PassRecord) => end(with_), awaited, live }
}

describe("a child that is to be stopped at its time-out", () => {
  const prepared = preparedPass({ timeout_ms: 5, on_timeout: "stop" })

  test(
    promised(["pass-over.C4", "pass-over.A4"], "and takes longer than that is told of when it has ended"),
    async () => {
      const { passOver, end, awaited, live } = setUp(prepared)
      const answer = await passOver(CALL, fakeToolContext("ses_root"))
      expect(answer).toContain("is being ended")
      expect(answer).not.toContain("could not be stored")
      end(passRecord({ output: workOutput() }))
      await expect.poll(() => live.has(PASS_ID)).toBe(false)
      expect(awaited).toEqual([false])
    },
  )

  test(promised("pass-over.A4", "and cannot be noted as such is told of all the same"), async () => {
    const broken = setUp(prepared, {
      passes: {
        begin: async () => passRecord(),
        advance: () => Promise.reject(new Error("ENOSPC")),
        refuse: async () => {},
        attemptFailed: async () => {},
        announce: async () => true,
        release: async () => true,
      },
    })
    await expect(broken.passOver(CALL, fakeToolContext("ses_root"))).rejects.toThrow("ENOSPC")
    broken.end(passRecord({ output: workOutput() }))
    await expect.poll(() => broken.awaited).toEqual([false])
  })
})

test(promised("pass-over.A4", "an originator that wants no answer is not promised one"), async () => {
  const { passOver } = setUp(preparedPass({}, passRequest({ return_required: false })))
  const answer = await passOver(CALL, fakeToolContext("ses_root"))
  expect(answer).toContain("You are not told of its result")
})
