import { describe, expect, test } from "vitest"
import { createLearningCalls } from "../../../.opencode/baton/ledger/client.ts"
import { type LearningEntry, parseDetail, type RetireEntry } from "../../../.opencode/baton/ledger/learnings.ts"
import { createDelivery } from "../../../.opencode/baton/ledger/outbox-delivery.ts"
import type { OutboxAttempt } from "../../../.opencode/baton/ledger/outbox-store.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { holdEmbedded, type RunLedger, runProgram } from "../../support/ledger/ledger-process.ts"
import { findRealProg, registerMissingRealProg } from "../../support/ledger/ledger-real.ts"
import { createScriptedLedger } from "../../support/ledger/scripted-ledger.ts"
import { NEWEST } from "../../support/opencode/opencode-binary.ts"

const NAME = { project: "demo", folder: "/home/me/my demo", key: "0123456789ab" }

const saying = (messageID: string, changes: Partial<LearningEntry> = {}): LearningEntry => ({
  kind: "learning",
  ...NAME,
  summary: `No, use "tabs" -- not $HOME, it's 100 %; ok?`,
  concepts: ["correction", "tabs"],
  files: ["src/a file.ts"],
  answered: "edited src/a.ts",
  confirmed: false,
  source: { at: "2026-11-22T10:00:00.000Z", sessionID: "ses_1", messageID },
  ...changes,
})
const end = (as: RetireEntry["as"]): RetireEntry => ({ kind: "retire", ...NAME, as, reason: "2026-11-22 not true" })

const open = async (run: RunLedger) => {
  await run(["init"])
  const learnings = createLearningCalls({
    read: async (args) => ({ kind: "exited", ...(await run(args)) }),
    write: async (args) => {
      const { exitCode, stderr } = await run(args)
      return exitCode === 0 ? { kind: "written" } : { kind: "refused", reason: stderr }
    },
  })
  const ledger = { ...createScriptedLedger().ledger, ...learnings }
  const deliver = createDelivery({ ledger, now: Date.now, self: "test", orphanGraceMs: 0 })
  return {
    attempts: [] as OutboxAttempt[],
    async put(entry: LearningEntry | RetireEntry) {
      const record = { version: 1, createdAt: "2026-11-22T10:00:00.000Z", entry } as const
      return await deliver(record, new Map(), async (attempt) => {
        this.attempts.push(attempt)
      })
    },
    list: async () => {
      const read = await learnings.readLearnings("demo")
      if (read.kind !== "found") throw new Error(read.reason)
      return read.learnings
    },
  }
}

const describeLearnings = (name: string, start: () => RunLedger): void => {
  describe(`learnings in the ledger (${name})`, () => {
    test(promised("learning.B2", "a saying is stored with type and topic, files and source, once"), async () => {
      const ledger = await open(start())
      for (let round = 0; round < 2; round++) expect(await ledger.put(saying("msg_1"))).toEqual({ kind: "delivered" })
      expect(ledger.attempts).toHaveLength(1)
      const found = await ledger.list()
      const { summary } = saying("msg_1")
      expect(found).toMatchObject([{ summary, files: ["src/a file.ts"], status: "active" }])
      expect(found[0]?.concepts.toSorted()).toEqual(["correction", "tabs"])
      expect(parseDetail(found[0]?.detail ?? "")).toMatchObject({
        ...{ key: NAME.key, folder: NAME.folder, answered: "edited src/a.ts", confirmed: false, times: 1 },
        sources: [{ sessionID: "ses_1", messageID: "msg_1" }],
      })
      await ledger.put({ ...saying("msg_1"), folder: "/elsewhere/my demo" })
      expect(await ledger.list(), "of another folder with this name").toHaveLength(2)
    })

    test(promised("learning.B1", "said again it is counted, the same message once"), async () => {
      const ledger = await open(start())
      for (const entry of [saying("msg_1"), saying("msg_2"), saying("msg_1", { confirmed: true })])
        await ledger.put(entry)
      const [only, ...rest] = await ledger.list()
      expect(rest).toEqual([])
      expect(parseDetail(only?.detail ?? "")).toMatchObject({ times: 2, confirmed: true })
    })

    test(promised("learning.C2", "said again it stays forgotten, and comes back when it was replaced"), async () => {
      const ledger = await open(start())
      const other = await open(start())
      for (const entry of [saying("msg_1"), end("superseded"), saying("msg_1"), saying("msg_2")]) await other.put(entry)
      const statuses = (await other.list()).map(({ status }) => status)
      expect(statuses.toSorted()).toEqual(["active", "stale"])
      for (const entry of [saying("msg_1"), end("forgotten"), end("forgotten"), saying("msg_2")])
        expect(await ledger.put(entry)).toEqual({ kind: "delivered" })
      const forgotten = { status: "stale", detail: expect.stringContaining("Forgotten: 2026") }
      expect(await ledger.list()).toMatchObject([forgotten])
    })
  })
}

const embedded = holdEmbedded(NEWEST)
describeLearnings("embedded", () => embedded(temporaryFolder()))

const real = findRealProg()
if (real.kind === "found") describeLearnings("real prog", () => runProgram(real.program, { home: temporaryFolder() }))
else registerMissingRealProg("learnings in the ledger", real.reason)
