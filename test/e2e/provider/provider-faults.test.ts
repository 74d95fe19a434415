import { describe, expect, test } from "vitest"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import { promised } from "../../requirements.ts"
import { type ProviderProxy, startProviderProxy } from "../../support/faults/provider-proxy.ts"
import {
  BOTH_ENDS,
  closeTaskProjects,
  type ModelReply,
  type OpenCodeBinary,
  openSharedTask,
  type SharedTask,
  TASK,
} from "../../support/index.ts"
import { scriptedConfig } from "../../support/opencode/isolated-opencode.ts"
import { compact, lastTurn, recordsOf } from "../sessions.ts"

closeTaskProjects()

type Reply = (at: number) => ModelReply | Promise<ModelReply>

/**
 * A session on the task that continues after a failed summary.
 *
 * @param summarise answers each request for a summary
 */
const openSession = async (binary: OpenCodeBinary, summarise: Reply, proxy?: ProviderProxy) => {
  const recordsBefore: number[] = []
  const task: SharedTask = await openSharedTask(
    binary,
    async ({ kind, index }) => {
      if (kind !== "compaction") return { text: "Noted." }
      recordsBefore.push((await recordsOf(task)).length)
      return summarise(index)
    },
    proxy ? { config: { provider: scriptedConfig({ modelURL: proxy.url }).provider } } : {},
  )
  if (proxy) proxy.target = task.model.url
  const id = await task.say(task.message)
  return {
    task,
    id,
    compact: () => compact(task, id),
    /** OpenCode has repeated the summary by itself, or repeats it when the user continues. */
    expectOneRecord: async (line: string) => {
      await task.say("go on", id)
      await task.say("What is next?", id)
      expect(await task.records(1)).toEqual([`Compaction 1: ${line}`])
      expect(recordsBefore, "records when a summary was asked for").toEqual([0, 0])
      const { description } = await task.ledger.show(task.taskID)
      expect(description.startsWith(TASK.specification)).toBe(true)
      expect(description.split("# Handoff after compaction")).toHaveLength(2)
      expect(lastTurn(task)).toContain("(compaction 1 of this session)")
      expect(lastTurn(task)).toContain(TASK.title)
    },
  }
}

/** The first half of a summary's events. */
const half = (answer: string): string[] => {
  const events = answer.split("\n\n")
  return events.slice(0, events.length / 2)
}

const FAILURE = `data: ${JSON.stringify({ error: { message: "overloaded", type: "server_error" } })}\n\n`
const FAULTS: [what: string, spoil: (answer: string) => { text: string; isCut?: boolean }][] = [
  ["a connection that ends in mid-stream", (answer) => ({ text: half(answer).join("\n\n"), isCut: true })],
  ["an error in mid-stream", (answer) => ({ text: [...half(answer), FAILURE].join("\n\n") })],
]

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test.each(FAULTS)(promised("compaction.C8", "%s of a summary leaves no record of it"), async (_what, spoil) => {
    const proxy = await startProviderProxy()
    const summaries = ["This half of a summary, and all the rest of it.", "The whole summary."]
    const session = await openSession(binary, (at) => ({ text: summaries[at] ?? "" }), proxy)
    proxy.answer = (_body, answer) => (answer.includes("This half") ? spoil(answer) : { text: answer })
    await session.compact()
    await session.expectOneRecord("The whole summary.")
  })

  test.each([
    [429, "Too many requests."],
    [400, "No summary today."],
  ])(
    promised("compaction.C8", "a provider that answers %i leaves no record, and the repetition exactly one"),
    async (status, message) => {
      const session = await openSession(binary, (at) =>
        at === 0 ? { status, message } : { text: "The whole summary." },
      )
      await session.compact()
      await session.expectOneRecord("The whole summary.")
    },
  )

  test(promised("compaction.C8", "a summary that the user aborts leaves no record, its repetition one"), async () => {
    const asked = createDeferred<void>()
    const over = createDeferred<ModelReply>()
    const session = await openSession(binary, (at) => {
      if (at > 0) return { text: "The whole summary." }
      asked.resolve()
      return over.promise
    })
    const { client, ledger, taskID } = session.task
    const compaction = session.compact()
    await asked.promise
    await client.session.abort({ path: { id: session.id } })
    await compaction
    over.resolve({ text: "Too late." })
    expect((await ledger.show(taskID)).description).toBe(TASK.specification)
    await session.expectOneRecord("The whole summary.")
  })
})
