import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  ALL_LINES,
  BRIEF,
  COMPACTING_STEP,
  casesOf,
  eventually,
  isCompacted,
  LEDGER_WAIT_MS,
  measureRetention,
  openSharedTask,
  openTaskProject,
  retentionScript,
  type SharedTask,
  type Summariser,
  TASK,
  type TaskProject,
  testsOn,
  testsOnce,
} from "../../support/index.ts"
import {
  afterDelivery,
  compact,
  compactionsOf,
  compactsAfterSteps,
  compactsOnDemand,
  lastTurn,
  messagesOf,
  recordsOf,
  runWell,
  turnsOf,
} from "../sessions.ts"

/** Expects all that an agent has to know for its task. */
const expectKnown = ({ taskID }: SharedTask, conversation: string): void => {
  for (const known of [taskID, "Role: worker", TASK.title, TASK.definitionOfDone, BRIEF, `prog show ${taskID}`])
    expect(conversation).toContain(known)
}

describe.each(ALL_LINES)("OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  const everywhere = testsOn(binary)
  test(
    promised(["compaction.C1", "compaction.C7", "notices.A2"], "five compactions leave task and ledger intact"),
    async () => {
      const script = afterDelivery(() => task, retentionScript(5, "faithful"))
      const task: TaskProject = await openTaskProject(binary, script)
      const { stdout, stderr } = await runWell(task, task.message)
      expect(`${stdout}${stderr}`, "no notice").not.toContain("Baton")
      const retention = measureRetention(task.model.requests, task.taskID)
      expect(retention).toEqual({ compactions: 5, factsKept: 5, turnsKnowingTask: 5 })
      const { logs, description } = await task.ledger.show(task.taskID)
      expect(logs.map(({ message }) => message.replace(/:.*/, ""))).toEqual(
        [1, 2, 3, 4, 5].map((n) => `Compaction ${n}`),
      )
      expect(description.startsWith(TASK.specification)).toBe(true)
      expect(description.match(/Handoff after compaction \d/g)).toEqual(["Handoff after compaction 5"])
    },
  )

  const SUMMARISERS = casesOf<Summariser>(binary, ["careless", "foreign"])
  test.each(SUMMARISERS)(promised("compaction.C6", "a %s summary leaves a known task"), async (summariser) => {
    const task = await openSharedTask(binary, retentionScript(2, summariser))
    await task.say(task.message)
    const afterCompaction = turnsOf(task).slice(1)
    expect(afterCompaction).toHaveLength(2)
    for (const conversation of afterCompaction) expectKnown(task, conversation)
  })

  once(
    promised(["compaction.C3", "compaction.C7"], "three compactions by hand in a row are recorded once each"),
    async () => {
      const task = await openSharedTask(binary, compactsOnDemand)
      const id = await task.say(task.message)
      for (let row = 1; row <= 3; row++) await compact(task, id)
      const [, second, third] = compactionsOf(task)
      expect(second).toContain("Summary 1.")
      expect(third).toContain("Summary 2.")
      const records = [1, 2, 3].map((row) => `Compaction ${row}: Summary ${row}.`)
      expect(await task.records(3)).toEqual(records)
      await task.say("go on", id)
      expect(await recordsOf(task)).toEqual(records)
      expect(lastTurn(task)).toContain("Role: worker")
    },
  )

  once(promised("compaction.C7", "a subagent's own compaction is recorded for the parent's task"), async () => {
    const task = await openSharedTask(binary, (request) => {
      const { kind, conversation } = request
      if (kind === "compaction") return { text: "The child's summary." }
      if (isCompacted(request)) return { text: "The child is finished." }
      if (conversation.includes("The session that started you")) return COMPACTING_STEP
      if (conversation.includes("The child is finished.")) return { text: "Finished." }
      const input = { description: "Count", prompt: "COUNT-THE-FILES and nothing else", subagent_type: "general" }
      return { tool: "task", input }
    })
    await task.say(task.message)
    expect(compactionsOf(task)).toHaveLength(1)
    const child = turnsOf(task).find((conversation) => isCompacted({ conversation }))
    expect(child).toContain(`Task: ${task.taskID}`)
    expect(child).toContain("COUNT-THE-FILES and nothing else")
    expect(await task.records(1)).toEqual(["Compaction 1: The child's summary."])
  })

  once(promised("compaction.C8", "an empty summary is recorded as empty, with the facts"), async () => {
    const summarise = (index: number) => ({ text: index === 0 ? "The handoff that counts." : "" })
    const task = await openSharedTask(binary, compactsAfterSteps(2, summarise))
    await task.say(task.message)
    const second = async () => {
      const shown = await task.ledger.show(task.taskID)
      return shown.description.includes("Handoff after compaction 2") ? shown : undefined
    }
    const { logs, description } = await eventually("the second record", second, ...LEDGER_WAIT_MS)
    expect(logs.at(-1)?.message).toMatch(/^Compaction 2: the summary was empty/)
    expect(description.startsWith(TASK.specification)).toBe(true)
    for (const part of ["The summary of this compaction was empty.", "Facts gathered by program"])
      expect(description).toContain(part)
    for (const text of [description, lastTurn(task)]) expect(text).toContain("The handoff that counts.")
    expectKnown(task, lastTurn(task))
  })

  everywhere(
    promised(["start.A1", "compaction.C3", "compaction.C7"], "a compaction that is reverted is in no request"),
    async () => {
      const task = await openSharedTask(binary, compactsOnDemand)
      const id = await task.say(task.message)
      const path = { id }
      const compactAgain = async () => {
        await compact(task, id)
        return compactionsOf(task).at(-1)
      }
      const ask = async () => {
        await task.say("What is next?", id)
        return lastTurn(task)
      }
      const revert = async () => {
        const second = (await messagesOf(task, id)).filter(({ info }) => info.role === "user")[1]
        const { error } = await task.client.session.revert({ path, body: { messageID: second?.info.id ?? "" } })
        expect(error).toBeUndefined()
      }
      await task.say("REVERTED-WORDS", id)
      await compact(task, id)
      await task.records(1)
      const note = await ask()
      expect(note).toContain("(compaction 1 of this session)")
      await revert()
      expect((await task.client.session.unrevert({ path })).error).toBeUndefined()
      expect((await ask()).startsWith(note), "brought back it is the same").toBe(true)
      expect(await compactAgain()).toContain("Summary 1.")
      expect(await ask()).toContain("(compaction 2 of this session)")

      await revert()
      const inLedger = async () => (await task.ledger.show(task.taskID)).description
      const isTold = async () => (await inLedger()).includes("The user undid the compaction") || undefined
      await eventually("the undone compaction in the ledger", isTold, ...LEDGER_WAIT_MS)
      expect(await inLedger()).not.toMatch(/Summary \d\.|REVERTED-WORDS/)
      const begun = await ask()
      expect(begun).toContain(TASK.specification)
      expect(begun).not.toMatch(/Summary \d\.|REVERTED-WORDS|was compacted/)
      expect(await compactAgain()).not.toMatch(/Summary \d\.|REVERTED-WORDS/)
      const last = await ask()
      expect(last).toContain("(compaction 3 of this session)")
      expect(last).not.toMatch(/Summary [12]\.|says less|says more/)
      expect(await task.records(3)).toEqual([1, 2, 3].map((n) => `Compaction ${n}: Summary ${n}.`))
    },
  )
})
