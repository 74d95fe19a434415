import { describe, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { BOTH_ENDS, canToolsAsk } from "../support/opencode-binary.ts"
import { eventually } from "../support/opencode-server.ts"
import { closePassOverServers, openPassOverProject, openPassOverServer } from "../support/pass-over-project.ts"
import { passOver, returns } from "../support/pass-over-script.ts"
import type { ModelReply } from "../support/scripted-model.ts"
import { closeTaskProjects } from "../support/task-project.ts"

closeTaskProjects()
closePassOverServers()

const DONE = { text: "Done." }
const NOTICE = /\[result of pass_\d{17}_\w+\]/

/** A step that ends when the test says so. */
const createGate = (reply: ModelReply) => {
  let open: (() => void) | undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  let reached = 0
  return {
    step: async (): Promise<ModelReply> => {
      reached++
      await opened
      return reply
    },
    open: () => open?.(),
    isReached: () => (reached > 0 ? true : undefined),
  }
}

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised(
      ["pass-over.C4", "pass-over.A4", "pass-over.G1"],
      "a late result is kept and announced, and not applied by itself",
    ),
    async () => {
      const gate = createGate({ tool: "write", input: { filePath: "src/late.ts", content: "late\n" } })
      const task = await openPassOverProject(binary, {
        root: [passOver({ subagent: "coder", objective: "SLOW-WORK" }), DONE],
        agents: { "SLOW-WORK": [gate.step, returns(), DONE] },
        policy: { defaults: { timeout_ms: 1_000, on_timeout: "continue", auto_apply: true } },
      })
      const opencode = await openPassOverServer(binary, task)
      await opencode.say("Go.")
      const [answer = ""] = await opencode.answers()
      expect(answer).toContain("status timeout")
      expect(answer).toContain("E010 SUBAGENT_TIMEOUT")
      expect(answer).toMatch(/Child session: ses_/)
      gate.open()
      const notice = await eventually("the announcement", async () =>
        task.model.received("turn").find(({ conversation }) => NOTICE.test(conversation)),
      )
      expect(notice.conversation).toContain("(came late)")
      expect(notice.conversation).toContain("1 of them are held back")
      expect(() => task.project.read("src/late.ts")).toThrow()
    },
  )

  test(promised(["pass-over.C4"], "a subagent that is to be stopped is, and what it changed is held"), async () => {
    const gate = createGate(DONE)
    const task = await openPassOverProject(binary, {
      root: [passOver({ subagent: "coder", objective: "SLOW-WORK" }), DONE],
      agents: { "SLOW-WORK": [{ tool: "write", input: { filePath: "src/half.ts", content: "half\n" } }, gate.step] },
      policy: { defaults: { timeout_ms: 3_000, on_timeout: "stop" } },
    })
    const opencode = await openPassOverServer(binary, task)
    await opencode.say("Go.")
    const [answer = ""] = await opencode.answers()
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
      const task = await openPassOverProject(binary, {
        root: [passOver({ subagent: "coder", objective: "OUTER" }), DONE],
        agents: {
          OUTER: [passOver({ subagent: "second", objective: "INNER" }), returns(), DONE],
          INNER: [gate.step, returns(), DONE],
        },
      })
      const opencode = await openPassOverServer(binary, task)
      await opencode.sayLater("Go.")
      await eventually("the inner subagent's turn", gate.isReached)
      const [outer = ""] = await opencode.children()
      const [inner = ""] = await opencode.children(outer)
      await opencode.client.session.abort({ path: { id: opencode.sessionID } })
      const asked = task.model.requests.length
      gate.open()
      await eventually("all sessions' rest", async () => {
        const status = (await opencode.client.session.status()).data ?? {}
        return [opencode.sessionID, outer, inner].every((id) => (status[id]?.type ?? "idle") === "idle") || undefined
      })
      await eventually(
        "the log line",
        () => task.project.batonLog().find((line) => /cancelled|aborted/.test(line)) ?? true,
      )
      expect(task.model.requests.length).toBe(asked)
      expect(() => task.project.read("src/x.ts")).toThrow()
    },
  )

  test(
    promised(["pass-over.A1", "pass-over.G3"], "what a subagent says after its return is not waited for"),
    async () => {
      const gate = createGate(DONE)
      const task = await openPassOverProject(binary, {
        root: [passOver({ subagent: "coder", objective: "TALK-ON" }), DONE],
        agents: {
          "TALK-ON": [{ tool: "write", input: { filePath: "src/x.ts", content: "x\n" } }, returns(), gate.step],
        },
      })
      const opencode = await openPassOverServer(binary, task)
      await opencode.say("Go.")
      await eventually("its closing words' request", gate.isReached)
      const [answer = ""] = await opencode.answers()
      expect(answer).toContain("coder → completed")
      expect(answer).toContain("added src/x.ts")
      gate.open()
      const [child = ""] = await opencode.children()
      await eventually(
        "its closing words",
        async () =>
          (await opencode.messages(child)).some(
            ({ info, parts }) =>
              "completed" in info.time && parts.some((part) => part.type === "text" && part.text === "Done."),
          ) || undefined,
      )
    },
  )

  test(
    promised(["pass-over.A1", "pass-over.B1"], "what runs beside a return belongs to the result, and is waited for"),
    async () => {
      const slow = "sleep 1; echo late > src/late.ts"
      const task = await openPassOverProject(binary, {
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
      const opencode = await openPassOverServer(binary, task)
      await opencode.say("Go.")
      const [answer = ""] = await opencode.answers()
      expect(answer).toContain("Written.")
      expect(answer).toContain("added src/late.ts")
    },
  )

  test(
    promised(["pass-over.D2"], "aborting the originator ends a subagent, too, that has returned and still speaks"),
    async () => {
      const [words, next] = [createGate(DONE), createGate(DONE)]
      const task = await openPassOverProject(binary, {
        root: [passOver({ subagent: "audit", objective: "TALK-ON" }), next.step],
        agents: { "TALK-ON": [returns(), words.step] },
      })
      const opencode = await openPassOverServer(binary, task)
      await opencode.sayLater("Go.")
      await eventually("the originator's next step", next.isReached)
      await eventually("the subagent's closing words", words.isReached)
      const [child = ""] = await opencode.children()
      await opencode.client.session.abort({ path: { id: opencode.sessionID } })
      await eventually("both sessions' rest", async () => {
        const status = (await opencode.client.session.status()).data ?? {}
        return [opencode.sessionID, child].every((id) => (status[id]?.type ?? "idle") === "idle") || undefined
      })
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
      const task = await openPassOverProject(binary, {
        root: [passOver({ subagent: "audit", objective: "ASYNC-WORK", async: true }), DONE],
        agents: { "ASYNC-WORK": [gate.step, DONE] },
      })
      const opencode = await openPassOverServer(binary, task)
      await opencode.say("Go.")
      expect((await opencode.answers())[0]).toContain("audit is at work.")
      await opencode.client.session.summarize({
        path: { id: opencode.sessionID },
        body: { providerID: "scripted", modelID: "model" },
      })
      gate.open()
      await eventually("the announcement", async () =>
        task.model.received("turn").find(({ conversation }) => NOTICE.test(conversation)),
      )
      await opencode.say("And now?")
      const texts = (await opencode.messages()).flatMap(({ parts }) =>
        parts.flatMap((part) => (part.type === "text" ? [part.text] : [])),
      )
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
      const task = await openPassOverProject(binary, {
        root: [passOver({ subagent: "coder", objective: "CUT-OFF" }), DONE],
        agents: { "CUT-OFF": [{ tool: "write", input: { filePath: "src/half.ts", content: "half\n" } }, gate.step] },
      })
      const first = await openPassOverServer(binary, task)
      await first.sayLater("Go.")
      await eventually("the subagent's second step", gate.isReached)
      process.kill(first.server.pid, "SIGKILL")
      gate.open()
      const second = await openPassOverServer(binary, task, first.sessionID)
      await second.say("What happened?")
      const notice = await eventually("the announcement", async () =>
        task.model.received("turn").find(({ conversation }) => NOTICE.test(conversation)),
      )
      expect(notice.conversation).toContain("OpenCode ended while the subagent worked")
      expect(notice.conversation).toContain("added src/half.ts")
      expect(() => task.project.read("src/half.ts")).toThrow()
    },
  )

  test(
    promised(["pass-over.A6"], "where the policy says so, the user is asked before a result goes back"),
    async () => {
      const task = await openPassOverProject(binary, {
        root: [
          passOver({ subagent: "audit", objective: "ASK-ME" }),
          passOver({ subagent: "audit", objective: "ASK-ME" }),
          DONE,
        ],
        agents: { "ASK-ME": [returns({ decision: "approved" }), DONE] },
        policy: { defaults: { auto_return: false } },
        options: { config: { permission: { edit: "allow" } } },
      })
      const opencode = await openPassOverServer(binary, task)
      if (!canToolsAsk(binary)) {
        await opencode.say("Go.")
        const answers = await opencode.answers()
        expect(answers).toHaveLength(2)
        for (const answer of answers) expect(answer).toContain("This OpenCode cannot ask whether it may go back")
        return
      }
      const asked: string[] = []
      const events = await opencode.client.event.subscribe()
      const answering = (async () => {
        for await (const event of events.stream) {
          const { type, properties } = event as { type: string; properties: { id?: string; sessionID?: string } }
          if (type !== "permission.asked" || !properties.id || !properties.sessionID) continue
          asked.push(properties.id)
          await opencode.client.postSessionIdPermissionsPermissionId({
            path: { id: properties.sessionID, permissionID: properties.id },
            body: { response: asked.length === 1 ? "once" : "reject" },
          })
          if (asked.length === 2) return
        }
      })()
      await opencode.say("Go.")
      await answering
      const [released, refused] = await opencode.answers()
      expect(released).toContain("decision: approved")
      expect(refused).toContain("the user does not release the result of audit")
    },
  )
})
