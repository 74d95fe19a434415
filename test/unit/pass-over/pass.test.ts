import { expect, test } from "vitest"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import type { Prepared } from "../../../.opencode/baton/pass-over/child/active-pass.ts"
import { createActivePasses } from "../../../.opencode/baton/pass-over/child/active-passes.ts"
import { passOverError } from "../../../.opencode/baton/pass-over/errors.ts"
import { createPassRunner, type PassOverDeps } from "../../../.opencode/baton/pass-over/pass.ts"
import type { PassRecord } from "../../../.opencode/baton/pass-over/store/record.ts"
import { promised } from "../../requirements.ts"
import { fakeToolContext } from "../../support/opencode/fake-opencode.ts"
import { passRecord, passRequest, preparedPass, workOutput } from "../../support/opencode/pass-over-values.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

/** A pass whose child ends on the test's command. */
const setUp = (
  prepared: Prepared,
  transition?: PassOverDeps["passes"]["transition"],
  claim: PassOverDeps["owners"]["claim"] = async () => {},
  runChild?: PassOverDeps["runChild"],
) => {
  const ended = createDeferred<PassRecord>()
  const awaited: boolean[] = []
  const activePasses = createActivePasses()
  const record = passRecord({ state: { state: "timed_out" } })
  const created = {
    kind: "created",
    directory: "/p",
    sandbox: undefined,
    skipped: [],
    ready: Promise.resolve(undefined),
  } as const
  const passOver = createPassRunner({
    prepare: async () => ({ kind: "ready", prepared }),
    passes: {
      begin: async () => ({ kind: "moved", record }),
      transition: transition ?? (async () => ({ kind: "moved", record })),
      refuse: async () => {},
      announce: async () => true,
    },
    store: { findAnswer: async () => undefined, removeUnwritten: async () => {} },
    sandboxes: {
      create: async () => created,
      collect: async () => ({ kind: "changes", modifications: [], skipped: [], recovered: [], leftAlone: [] }),
    },
    toSandboxPaths: async () => ({ directory: "/p", worktree: "/p", root: "/c" }),
    owners: { claim, release: async () => {} },
    createBoundary: async () => ({ kind: "refused", code: "no-boundary", reason: "", fix: "" }),
    activePasses,
    runChild: runChild ?? (() => ended.promise),
    canDetach: () => true,
    onEnd: async (_record, pass) => void awaited.push(pass.state.originator === "waiting"),
    recordResult: async () => {},
    approve: async () => ({ kind: "approved", note: undefined }),
    log: createRecordedLog(),
    now: () => new Date(0),
  })
  const call = { sessionID: "ses_root", messageID: "msg", agent: "build", args: {} } as never
  return {
    pass: (abort?: AbortSignal) => passOver(call, fakeToolContext("ses_root", abort)),
    end: () => ended.resolve(passRecord({ output: workOutput() })),
    awaited,
    activePasses,
  }
}

test(promised("pass-over.A4", "a time-out that cannot be stored leaves the result to be announced"), async () => {
  const prepared = preparedPass({ timeout_ms: 5, on_timeout: "continue" })
  const { pass, end, awaited } = setUp(prepared, () => Promise.reject(new Error("ENOSPC")))
  await expect(pass()).rejects.toThrow("ENOSPC")
  end()
  await expect.poll(() => awaited).toEqual([false])
})

test(promised("pass-over.G2", "where no pass can be recorded, nothing is passed, and the agent told why"), async () => {
  const denied = Object.assign(new Error("EACCES: permission denied, mkdir '/p'"), { code: "EACCES" })
  const { pass, activePasses } = setUp(preparedPass({}), undefined, () => Promise.reject(denied))
  const { text: answer } = await pass()
  expect(answer).toMatch(/^E011 \w+: Nothing was passed, .*\nCause: \.opencode\/state .*EACCES.*\nNext: Do the work/)
  expect(activePasses.running()).toEqual([])
})

test(promised("pass-over.E4", "a pass whose child's work throws is over, and its originator told"), async () => {
  const work = () => Promise.reject(new Error("ENOSPC"))
  const { pass, activePasses, awaited } = setUp(preparedPass({}), undefined, undefined, work)
  expect((await pass()).text).toMatch(/^E011 .*could not be stored/)
  expect(activePasses.running()).toEqual([])
  expect(awaited).toEqual([true])
})

test(promised("pass-over.A4", "an originator that wants no answer is not promised one"), async () => {
  const { pass } = setUp(preparedPass({}, passRequest({ return_required: false })))
  expect((await pass()).text).toContain("You are not told of its result")
})

test(promised("pass-over.D2", "an aborted originator drops a result that comes in the same moment"), async () => {
  const steps: string[] = []
  const refused = { kind: "refused", error: passOverError("E024", { message: "", cause: "" }) } as const
  const { pass, end } = setUp(preparedPass({}), async (_id, { type }) => {
    steps.push(type)
    return type === "cancelled" ? refused : { kind: "moved", record: passRecord() }
  })
  const answer = pass(AbortSignal.abort())
  end()
  expect((await answer).text).toContain("was cancelled")
  expect(steps).toEqual(["cancelled", "rejected"])
})
