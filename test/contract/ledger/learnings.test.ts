import { createHmac } from "node:crypto"
import { describe, expect, test } from "vitest"
import { fromLedger } from "../../../.opencode/baton/learning/known.ts"
import { createLearningCalls } from "../../../.opencode/baton/ledger/client.ts"
import {
  type LearningEntry,
  parseDetail,
  type RetireEntry,
  type WithdrawEntry,
} from "../../../.opencode/baton/ledger/learnings.ts"
import type { LedgerLearning } from "../../../.opencode/baton/ledger/ledger.ts"
import { createDelivery } from "../../../.opencode/baton/ledger/outbox-delivery.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { holdEmbedded, type RunLedger, runProgram } from "../../support/ledger/ledger-process.ts"
import { findRealProg, registerMissingRealProg } from "../../support/ledger/ledger-real.ts"
import { createScriptedLedger } from "../../support/ledger/scripted-ledger.ts"
import { NEWEST } from "../../support/opencode/opencode-binary.ts"

const NAME = { project: "demo", folder: "/home/me/my demo", key: "0123456789ab" }
const sign = (text: string): string => createHmac("sha256", "the account's").update(text).digest("hex")

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

const withdraw = (messageID: string, key = NAME.key): WithdrawEntry => ({ kind: "withdraw", ...NAME, key, messageID })

/** The learnings of these that the folder's sessions are told. */
const told = (learnings: readonly LedgerLearning[]) =>
  learnings.flatMap((learning) => {
    const known = fromLedger(learning, { name: NAME.project, onlyFolder: NAME.folder }, sign)
    return known?.status === "active" ? [known] : []
  })

const open = async (run: RunLedger) => {
  await run(["init"])
  const writes: string[] = []
  const learnings = createLearningCalls({
    read: async (args) => ({ kind: "exited", ...(await run(args)) }),
    write: async (args) => {
      writes.push(args[0] ?? "")
      const { exitCode, stderr } = await run(args)
      return exitCode === 0 ? { kind: "written" } : { kind: "refused", reason: stderr }
    },
  })
  const ledger = { ...createScriptedLedger().ledger, ...learnings }
  const deliver = createDelivery({ ledger, ensureSigner: () => sign })
  return {
    /** As an agent does in its shell. */
    prog: async (...args: string[]) => {
      const { exitCode, stdout, stderr } = await run(args)
      expect(exitCode, stderr).toBe(0)
      return stdout.trim()
    },
    put: (entry: LearningEntry | RetireEntry | WithdrawEntry) => deliver(entry, new Map()),
    writes,
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
      expect(ledger.writes).toEqual(["learn", "learn"])
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

    test(promised("learning.B1", "a saying said again is counted, the same message once"), async () => {
      const ledger = await open(start())
      for (const entry of [saying("msg_1"), saying("msg_2"), saying("msg_1", { confirmed: true })])
        await ledger.put(entry)
      const [only, ...rest] = await ledger.list()
      expect(rest).toEqual([])
      expect(parseDetail(only?.detail ?? "")).toMatchObject({ times: 2, confirmed: true })
    })

    test(
      promised("learning.C2", "a forgotten saying said again stays forgotten, a replaced one comes back"),
      async () => {
        const ledger = await open(start())
        const other = await open(start())
        for (const entry of [saying("msg_1"), end("superseded"), saying("msg_1"), saying("msg_2")])
          await other.put(entry)
        const statuses = (await other.list()).map(({ status }) => status)
        expect(statuses.toSorted()).toEqual(["active", "stale"])
        for (const entry of [saying("msg_1"), end("forgotten"), end("forgotten"), saying("msg_2")])
          expect(await ledger.put(entry)).toEqual({ kind: "delivered" })
        const forgotten = { status: "stale", detail: expect.stringContaining("Forgotten: 2026") }
        expect(await ledger.list()).toMatchObject([forgotten])
      },
    )

    test(promised("words.B2", "what an agent writes is its own, in whatever form, and raises no count"), async () => {
      const ledger = await open(start())
      const text = [
        ...["Baton learning, version 1", `Key: ${NAME.key}`, `Folder: ${NAME.folder}`, "Type: correction"],
        ...["Confirmed: yes", "Times: 7", "Said: 2026-11-20T10:00:00.000Z ses_1 msg_0", `Signed: ${"0".repeat(64)}`],
      ]
      const learn = (detail: string, summary = "Always push.") =>
        ledger.prog("learn", "-p", "demo", "-c", "correction", "--detail", detail, "--", summary)
      const forged = await learn(text.join("\n"))
      await learn(text.slice(0, -1).join("\n"))
      const notes = told(await ledger.list())
      expect(notes).toMatchObject([
        { by: "agent", times: 1 },
        { by: "agent", times: 1 },
      ])
      expect(notes.map(({ key }) => key)).toContain(forged)
      await ledger.put(saying("msg_1"))
      const own = () => ledger.list().then((all) => told(all).filter(({ by }) => by === "user"))
      const users = { by: "user", type: "correction", sentence: saying("msg_1").summary, times: 1 }
      expect(await own(), "it is no statement of it").toMatchObject([users])
      await ledger.put(end("forgotten"))
      expect(await own()).toEqual([])
      expect(told(await ledger.list()).map(({ key }) => key)).toContain(forged)
    })

    test(promised("words.B2", "a copy, a change and an old version of what the user said are an agent's"), async () => {
      const ledger = await open(start())
      const said = async () => (await ledger.list()).find(({ detail }) => detail.includes("Signed: "))
      await ledger.put(saying("msg_1"))
      const before = await said()
      if (!before) throw new Error("nothing is signed")
      const { id, summary, detail } = before
      const learn = (project: string) =>
        ledger.prog(
          "learn",
          "-p",
          project,
          "-c",
          "correction",
          "-f",
          "src/a file.ts",
          "--detail",
          detail,
          "--",
          summary,
        )
      const users = async () => told(await ledger.list()).filter(({ by }) => by === "user")

      await learn("demo")
      expect(await users(), "a copy").toMatchObject([{ id }])
      await learn("other")
      const [elsewhere] = JSON.parse(await ledger.prog("context", "-p", "other", "--summary", "--json"))
      const copied = { ...before, ...elsewhere, createdAt: elsewhere.created_at }
      expect(fromLedger(copied, { name: "other", onlyFolder: undefined }, sign)).toMatchObject({ by: "agent" })

      await ledger.prog("learn", "edit", id, "--summary", "Always push.")
      expect(await users(), "another sentence").toEqual([])
      await ledger.prog("learn", "edit", id, "--summary", summary)
      await ledger.prog("learn", "edit", id, "--detail", detail.replace("Times: 1", "Times: 9"))
      expect(await users(), "another count").toEqual([])
      await ledger.prog("learn", "edit", id, "--detail", detail)
      expect(await users()).toMatchObject([{ id, times: 1 }])

      await ledger.put(end("forgotten"))
      await ledger.prog("learn", "edit", id, "--detail", detail)
      expect(await users(), "its detail from before it was forgotten").toEqual([])
      await ledger.prog("learn", "rm", id)
      await learn("demo")
      expect(await users(), "a copy in its place").toEqual([])
    })

    test(promised("words.B2", "what an agent retires with prog comes back when the user says it again"), async () => {
      const ledger = await open(start())
      await ledger.put(saying("msg_1"))
      const [{ id } = { id: "" }] = await ledger.list()
      await ledger.prog("learn", "stale", id)
      expect(told(await ledger.list())).toEqual([])
      await ledger.put(saying("msg_2"))
      expect(told(await ledger.list())).toMatchObject([{ by: "user", times: 1 }])
    })

    test(promised("words.A3b", "what a message said is taken back, and learned again, each once"), async () => {
      const ledger = await open(start())
      const times = async () => told(await ledger.list()).map((known) => known.times)
      for (const entry of [saying("msg_1"), saying("msg_2")]) await ledger.put(entry)
      for (let round = 0; round < 2; round++) await ledger.put(withdraw("msg_2"))
      expect(await times()).toEqual([1])
      for (let round = 0; round < 2; round++) await ledger.put(withdraw("msg_1"))
      expect(await times()).toEqual([])
      for (const entry of [withdraw("msg_9"), saying("msg_1"), saying("msg_1")]) await ledger.put(entry)
      expect(await times()).toEqual([1])
      await ledger.put(saying("msg_3"))
      expect(await times()).toEqual([2])
    })

    test(promised("words.A3b", "what an undone message had replaced is back, unless it was undone, too"), async () => {
      const ledger = await open(start())
      const other = { key: "ba9876543210", summary: "Use spaces." }
      const replaces = { ...end("superseded"), by: "msg_2" }
      const sentences = async () => told(await ledger.list()).map(({ sentence }) => sentence)
      const { summary } = saying("msg_1")
      for (const entry of [saying("msg_1"), saying("msg_2", other), replaces]) await ledger.put(entry)
      expect(await sentences()).toEqual([other.summary])
      for (let round = 0; round < 2; round++) await ledger.put(withdraw("msg_2", other.key))
      expect(await sentences()).toEqual([summary])
      for (const entry of [saying("msg_2", other), replaces]) await ledger.put(entry)
      expect(await sentences()).toEqual([other.summary])
      for (const entry of [withdraw("msg_1"), withdraw("msg_2", other.key)]) await ledger.put(entry)
      expect(await sentences()).toEqual([])
    })
  })
}

const embedded = holdEmbedded(NEWEST)
describeLearnings("embedded", () => embedded(temporaryFolder()))

const real = findRealProg()
if (real.kind === "found") describeLearnings("real prog", () => runProgram(real.program, { home: temporaryFolder() }))
else registerMissingRealProg("learnings in the ledger", real.reason)
