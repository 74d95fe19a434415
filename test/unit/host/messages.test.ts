import type { AssistantMessage } from "@opencode-ai/sdk"
import { expect, test } from "vitest"
import * as stored from "../../../.opencode/baton/host/messages.ts"
import { promised } from "../../requirements.ts"
import { asksToCompact, assistantMessage, userSays } from "../../support/opencode/stored-messages.ts"

const { isSummaryRequest, latestCompaction, showsPreviousSummary } = stored
const assistant = (id: string, parentID: string, extra: Partial<AssistantMessage>, text?: string) =>
  assistantMessage(text, extra, { id, parentID })
const summary = (id: string, parentID: string, text?: string) =>
  assistant(id, parentID, { summary: true, finish: "stop" }, text)

test(promised("compaction.C7", "the newest finished summary counts, with its request"), () => {
  const messages = [asksToCompact("u1"), summary("a1", "u1", "one"), asksToCompact("u2"), summary("a2", "u2", " two ")]
  expect(latestCompaction(messages)).toEqual({ requestID: "u2", summaryID: "a2", createdAt: 1, summary: "two" })
})

test(promised("compaction.C8", "a summary that failed or is unfinished is no summary; an empty one is"), () => {
  const error: AssistantMessage["error"] = { name: "UnknownError", data: { message: "400" } }
  const failed = assistant("a", "u", { summary: true, finish: "stop", error }, "x")
  const unfinished = assistant("a", "u", { summary: true }, "half")
  expect(latestCompaction([asksToCompact("u"), failed])).toBeUndefined()
  expect(latestCompaction([asksToCompact("u"), unfinished])).toBeUndefined()
  expect(latestCompaction([asksToCompact("u"), summary("a", "u")])).toMatchObject({ summary: "" })
})

test(promised("compaction.C7", "an older summary behind the newest one does not count"), () => {
  const older = [userSays("hi", "m1"), asksToCompact("m2"), summary("m3", "m2", "one")]
  const messages = [asksToCompact("m5"), summary("m6", "m5", "two"), ...older, userSays("go on", "m7")]
  expect(latestCompaction(messages)).toEqual({ requestID: "m5", summaryID: "m6", createdAt: 1, summary: "two" })
  expect(isSummaryRequest(messages)).toBe(false)
  expect(isSummaryRequest([asksToCompact("m8"), ...messages])).toBe(true)
})

test(promised("compaction.C3", "an unfinished summary shows the prior one only as the newest message"), () => {
  expect(showsPreviousSummary([asksToCompact("u1"), assistant("a1", "u1", { summary: true })])).toBe(true)
  expect(showsPreviousSummary([assistant("a0", "u0", { finish: "stop" }), asksToCompact("u1")])).toBe(false)
  const cutOff = assistant("m2", "m1", { summary: true })
  expect(showsPreviousSummary([cutOff, userSays("go on", "m3")])).toBe(false)
  expect(showsPreviousSummary([cutOff, asksToCompact("m3")])).toBe(false)
})

test(promised("compaction.C7", "the log has one plain line of the summary, of at most 200 characters"), () => {
  expect(stored.summaryLine("## Done\n\n- The parser reads CRLF.\n- more")).toBe("The parser reads CRLF.")
  expect(stored.summaryLine("# Only a heading")).toBe("Only a heading")
  expect(stored.summaryLine("")).toBe("")
  expect(stored.summaryLine("x".repeat(500))).toHaveLength(200)
})
