import { once } from "node:events"
import { describe, expect, onTestFinished, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  canToolsAsk,
  closeTaskProjects,
  eventually,
  MODEL,
  type ModelReply,
  type SharedTask,
  startServer,
} from "../../support/index.ts"
import { passOver, returns } from "../../support/model/pass-over-script.ts"
import { openPassOverSession, openSharedPasses, passStates, sources } from "../../support/opencode/pass-over-project.ts"

closeTaskProjects()

const DONE = { text: "Done." }
const NOTICE = /\[result of pass_\d{17}_\w+\]/

/** A step that ends on the test's command. */
const createGate = (reply: ModelReply) => {
  const [reached, opened] = [new AbortController(), new AbortController()]
  return {
    step: async (): Promise<ModelReply> => {
      reached.abort()
      if (!opened.signal.aborted) await once(opened.signal, "abort")
      return reply
    },
    open: () => opened.abort(),
    /** The model got the request for this step. */
    reached: once(reached.signal, "abort"),
  }
}

type Session = Awaited<ReturnType<typeof openPassOverSession>>
const restOf = ({ busy }: Session, ids: readonly string[]) =>
  eventually("the sessions' rest", async () => ((await busy(ids)).length === 0 ? true : undefined), 60_000)
const textsOf = async ({ messages }: Session, of?: string): Promise<string[]> =>
  (await messages(of)).flatMap(({ parts }) => parts.flatMap((part) => (part.type === "text" ? [part.text] : [])))
const announcement = ({ model }: SharedTask) =>
  eventually("the announcement", () => model.received("turn").find(({ conversation }) => NOTICE.test(conversation)))

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised(
      ["pass-over.C4", "pass-over.A4", "pass-over.G1"],
      "a late result is kept and announced, and not applied by itself",
    ),
    async () => {
      const gate = createGate({ tool: "write", input: { filePath: "src/late.ts", content: "late\n" } })
      const task = await openPassOverSession(binary, {
        root: [passOver({ subagent: "coder", objective: "SLOW-WORK" }), DONE],
        agents: { "SLOW-WORK": [gate.step, returns(), DONE] },
        policy: { defaults: { timeout_ms: 1_000, on_timeout: "continue", auto_apply: true } },
      })
      await task.say("Go.")
      const [answer = ""] = await task.answers()
      expect(answer).toContain("status timeout")
      expect(answer).toContain("E010 SUBAGENT_TIMEOUT")
      expect(answer).toMatch(/Child session: ses_/)
      gate.open()
      const notice = await announcement(task)
      expect(notice.conversation).toContain("(came late)")
      expect(notice.conversation).toContain("1 of them are held back")
      expect(sources(task.project)).toEqual(["a.ts"])
    },
  )

  test(promised(["pass-over.C4"], "a subagent that is to be stopped is, and what it changed is held"), async () => {
    const gate = createGate(DONE)
    const task = await openPassOverSession(binary, {
      root: [passOver({ subagent: "coder", objective: "SLOW-WORK" }), DONE],
      agents: { "SLOW-WORK": [{ tool: "write", input: { filePath: "src/half.ts", content: "half\n" } }, gate.step] },
      policy: { defaults: { timeout_ms: 3_000, on_timeout: "stop" } },
    })
    await task.say("Go.")
    const [answer = ""] = await task.answers()
    expect(answer).toContain("coder → timeout")
    expect(answer).toContain("added src/half.ts")
    gate.open()
  })

  test(
    promised(
      ["pass-over.D2", "pass-over.G1"],
      "aborting the originator ends everything below it: no model is asked again",
    ),
    async () => {
      const gate = createGate({ tool: "write", input: { filePath: "src/x.ts", content: "x\n" } })
      const task = await openPassOverSession(binary, {
        root: [passOver({ subagent: "coder", objective: "OUTER" }), DONE],
        agents: {
          OUTER: [passOver({ subagent: "second", objective: "INNER" }), returns(), DONE],
          INNER: [gate.step, returns(), DONE],
        },
      })
      await task.sayLater("Go.")
      await gate.reached
      const [outer = ""] = await task.children()
      const [inner = ""] = await task.children(outer)
      const sessions = [task.sessionID, outer, inner]
      expect(await task.busy(sessions)).toEqual(sessions)
      const asked = task.model.requests.length
      await task.client.session.abort({ path: { id: task.sessionID } })
      await restOf(task, sessions)
      const areCancelled = () => passStates(task.project).join() === "cancelled,cancelled" || undefined
      await eventually("the end of both passes", areCancelled)
      gate.open()
      // Pending requests would be made by the end of another turn.
      await task.say("And now?")
      expect(task.model.requests.length).toBe(asked + 1)
      expect(sources(task.project)).toEqual(["a.ts"])
    },
  )

  test(
    promised(["pass-over.A1", "pass-over.G3"], "what a subagent says after its return is not waited for"),
    async () => {
      const gate = createGate(DONE)
      const task = await openPassOverSession(binary, {
        root: [passOver({ subagent: "coder", objective: "TALK-ON" }), DONE],
        agents: {
          "TALK-ON": [{ tool: "write", input: { filePath: "src/x.ts", content: "x\n" } }, returns(), gate.step],
        },
      })
      await task.say("Go.")
      await gate.reached
      const [answer = ""] = await task.answers()
      expect(answer).toContain("coder → completed")
      expect(answer).toContain("added src/x.ts")
      gate.open()
      const [child = ""] = await task.children()
      await eventually("its closing words", async () => (await textsOf(task, child)).includes("Done.") || undefined)
      await restOf(task, [child])
    },
  )

  test(
    promised(["pass-over.A1", "pass-over.B1"], "what runs beside a return belongs to the result, and is waited for"),
    async () => {
      const slow = "sleep 1; echo late > src/late.ts"
      const task = await openPassOverSession(binary, {
        root: [passOver({ subagent: "coder", objective: "BOTH-AT-ONCE" }), DONE],
        agents: {
          "BOTH-AT-ONCE": [
            {
              tools: [
                { tool: "bash", input: { command: slow, description: "writes late" } },
                { tool: "pass_over_return", input: { status: "completed", summary: "Written." } },
              ],
            },
            DONE,
          ],
        },
      })
      await task.say("Go.")
      const [answer = ""] = await task.answers()
      expect(answer).toContain("Written.")
      expect(answer).toContain("added src/late.ts")
    },
  )

  test(
    promised(["pass-over.D2"], "aborting the originator ends a subagent, too, that has returned and still speaks"),
    async () => {
      const [words, next] = [createGate(DONE), createGate(DONE)]
      const task = await openPassOverSession(binary, {
        root: [passOver({ subagent: "audit", objective: "TALK-ON" }), next.step],
        agents: { "TALK-ON": [returns(), words.step] },
      })
      await task.sayLater("Go.")
      await Promise.all([next.reached, words.reached])
      const [child = ""] = await task.children()
      const sessions = [task.sessionID, child]
      expect(await task.busy(sessions)).toEqual(sessions)
      await task.client.session.abort({ path: { id: task.sessionID } })
      await restOf(task, sessions)
      words.open()
      next.open()
    },
  )

  test(
    promised(
      ["pass-over.A4", "pass-over.G1"],
      "an asynchronous result is announced once, with a compaction in between",
    ),
    async () => {
      const gate = createGate(returns({ decision: "approved" }))
      const task = await openPassOverSession(binary, {
        root: [passOver({ subagent: "audit", objective: "ASYNC-WORK", async: true }), DONE],
        agents: { "ASYNC-WORK": [gate.step, DONE] },
      })
      await task.say("Go.")
      expect((await task.answers())[0]).toContain("audit is at work.")
      await task.client.session.summarize({ path: { id: task.sessionID }, body: MODEL })
      gate.open()
      await announcement(task)
      await task.say("And now?")
      const texts = await textsOf(task)
      expect(texts.filter((text) => NOTICE.test(text))).toHaveLength(1)
      expect(texts.find((text) => NOTICE.test(text))).toContain("decision: approved")
    },
  )

  test(
    promised(
      ["pass-over.A4", "pass-over.B3"],
      "a pass that a killed process left is brought to its end and announced at the next idle",
    ),
    async () => {
      const gate = createGate(DONE)
      const task = await openSharedPasses(binary, {
        root: [passOver({ subagent: "coder", objective: "CUT-OFF" }), DONE],
        agents: { "CUT-OFF": [{ tool: "write", input: { filePath: "src/half.ts", content: "half\n" } }, gate.step] },
      })
      const { client, pid, stop } = await startServer(binary, task.project)
      onTestFinished(stop)
      const id = (await client.session.create({ body: {} })).data?.id ?? ""
      await client.session.promptAsync({ path: { id }, body: { parts: [{ type: "text", text: "Go." }] } })
      await gate.reached
      process.kill(pid, "SIGKILL")
      gate.open()
      await task.say("What happened?", id)
      const notice = await announcement(task)
      expect(notice.conversation).toContain("OpenCode ended while the subagent worked")
      expect(notice.conversation).toContain("added src/half.ts")
      expect(sources(task.project)).toEqual(["a.ts"])
    },
  )

  test(
    promised(["pass-over.A6"], "where the policy says so, the user is asked before a result goes back"),
    async () => {
      const task = await openPassOverSession(binary, {
        root: [
          passOver({ subagent: "audit", objective: "ASK-ME" }),
          passOver({ subagent: "audit", objective: "ASK-ME" }),
          DONE,
        ],
        agents: { "ASK-ME": [returns({ decision: "approved" }), DONE] },
        policy: { defaults: { auto_return: false } },
        config: { permission: { edit: "allow" } },
      })
      if (!canToolsAsk(binary)) {
        await task.say("Go.")
        const answers = await task.answers()
        expect(answers).toHaveLength(2)
        for (const answer of answers) expect(answer).toContain("This OpenCode cannot ask whether it may go back")
        return
      }
      const asked: string[] = []
      const events = await task.client.event.subscribe()
      const answering = (async () => {
        for await (const event of events.stream) {
          const { type, properties } = event as { type: string; properties: { id?: string; sessionID?: string } }
          if (type !== "permission.asked" || !properties.id || !properties.sessionID) continue
          asked.push(properties.id)
          await task.client.postSessionIdPermissionsPermissionId({
            path: { id: properties.sessionID, permissionID: properties.id },
            body: { response: asked.length === 1 ? "once" : "reject" },
          })
          if (asked.length === 2) return
        }
      })()
      await task.say("Go.")
      await answering
      const [released, refused] = await task.answers()
      expect(released).toContain("decision: approved")
      expect(refused).toContain("the user does not release the result of audit")
    },
  )
})
