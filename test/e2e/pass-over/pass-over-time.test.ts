import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import type { AuditEntry } from "../../../.opencode/baton/pass-over/audit/log.ts"
import type { PassRecord } from "../../../.opencode/baton/pass-over/store/record.ts"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  canToolsAsk,
  deadline,
  endsOf,
  eventually,
  type ModelReply,
  newestWords,
  type OpenCodeBinary,
  type SharedTask,
  testsOnce,
} from "../../support/index.ts"
import { passOver, returns, START } from "../../support/model/pass-over-script.ts"
import { openServer } from "../../support/opencode/model-project.ts"
import {
  openPassOverProject,
  openSharedPasses,
  type PassOverProject,
  sources,
} from "../../support/opencode/pass-over-project.ts"
import type { TestProject } from "../../support/opencode/test-project.ts"
import { isTmuxHere, startTui } from "../../support/opencode/tui.ts"
import { compact, createSession, messagesOf, onEvents, turnsOf } from "../sessions.ts"

/** The project's passes, oldest first. */
const passRecords = ({ directory }: TestProject): PassRecord[] => {
  const folder = join(directory, ".opencode", "state", "pass-over")
  const ids = readdirSync(folder).filter((name) => name.startsWith("pass_"))
  return ids.sort().map((id) => JSON.parse(readFileSync(join(folder, id, "pass.json"), "utf8")))
}

/** The lines of the project's audit, in order. */
const auditLines = ({ directory }: TestProject): AuditEntry[] => {
  const folder = join(directory, ".opencode", "pass-over-logs")
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".jsonl"))
  return names
    .flatMap((name) => readFileSync(join(folder, name), "utf8").trim().split("\n"))
    .map((line) => JSON.parse(line))
}

const passStates = (project: TestProject): string[] => passRecords(project).map(({ state }) => state.state)

/** Tool answers in a session, oldest first. */
const toolAnswers = async (task: Pick<SharedTask, "client">, id: string): Promise<string[]> =>
  (await messagesOf(task, id)).flatMap(({ parts }) =>
    parts.flatMap((part) => {
      if (part.type !== "tool") return []
      if (part.state.status === "completed") return [part.state.output]
      return part.state.status === "error" ? [part.state.error] : []
    }),
  )

/** Opens such a project with a session and the user's actions in it. */
const openPassOverSession = async (binary: OpenCodeBinary, options: PassOverProject) => {
  const task = await openSharedPasses(binary, options)
  const { client, say } = task
  const id = await createSession(task)
  const messages = (of = id) => messagesOf(task, of)
  return {
    ...task,
    sessionID: id,
    messages,
    say: (text: string) => say(text, id),
    sayLater: (text: string) => client.session.promptAsync({ path: { id }, body: { parts: [{ type: "text", text }] } }),
    children: async (of = id) =>
      ((await client.session.children({ path: { id: of } })).data ?? []).map((each) => each.id),
    /** Tool answers in this session, oldest first. */
    answers: () => toolAnswers(task, id),
    /** Those of these sessions that are busy. */
    busy: async (ids: readonly string[]): Promise<string[]> => {
      const { data, error } = await client.session.status()
      if (!data) throw new Error(`no session's status is known: ${JSON.stringify(error)}`)
      // Idle sessions are not in it.
      return ids.filter((each) => (data[each]?.type ?? "idle") !== "idle")
    },
  }
}

const DONE = { text: "Done." }
const write = (filePath: string) => ({ tool: "write", input: { filePath, content: "made\n" } })
const HOUR_AGO = new Date(Date.now() - 3_600_000)
const NOTICE = /\[result of pass_\d{17}_\w+\]/

/** Stops a process where it holds no lock of OpenCode's database, since no other one could write there. */
const suspend = (pid: number) =>
  eventually("a moment without a lock of the database", () => {
    process.kill(pid, "SIGSTOP")
    const isStopped = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.startsWith("T")
    if (isStopped && !readFileSync("/proc/locks", "latin1").includes(` WRITE ${pid} `)) return true
    process.kill(pid, "SIGCONT")
    return undefined
  })

/** A step that ends on the test's command. */
const createGate = (reply: ModelReply) => {
  const [reached, opened] = [createDeferred<void>(), createDeferred<void>()]
  return {
    step: async (): Promise<ModelReply> => {
      reached.resolve()
      await opened.promise
      return reply
    },
    open: () => opened.resolve(),
    /** The model got the request for this step. */
    reached: reached.promise,
  }
}

type Session = Awaited<ReturnType<typeof openPassOverSession>>
/** Aborts the originator, and expects that all these sessions were at work and come to rest. */
const abortAll = async ({ busy, client, sessionID }: Session, sessions: readonly string[]): Promise<void> => {
  expect(await busy(sessions)).toEqual(sessions)
  await client.session.abort({ path: { id: sessionID } })
  await eventually("the sessions' rest", async () => (await busy(sessions)).length === 0 || undefined, 60_000)
}
const textsOf = async ({ messages }: Session): Promise<string[]> =>
  (await messages()).flatMap(({ parts }) => parts.flatMap((part) => (part.type === "text" ? [part.text] : [])))
const announcement = (task: SharedTask) =>
  eventually("the announcement", () => turnsOf(task).find((conversation) => NOTICE.test(conversation)))

describe.each(BOTH_ENDS)(promised("pass-over.G1", "OpenCode $version"), (binary) => {
  const once = testsOnce(binary)
  once(promised(["pass-over.C4", "pass-over.A4"], "a late result is announced and not applied"), async () => {
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
    expect(answer).toMatch(/Child session: (?:ses_|none yet)/)
    await gate.reached
    const [child] = await task.children()
    gate.open()
    const notice = await announcement(task)
    expect(notice).toContain(`Child session: ${child}`)
    expect(notice).toContain("(came late)")
    expect(notice).toContain("1 of them are pending")
    expect(sources(task.project)).toEqual(["a.ts"])
  })

  test(promised("pass-over.D2", "an abort ends everything below: no model is asked again"), async () => {
    const gate = createGate({ tool: "write", input: { filePath: "src/x.ts", content: "x\n" } })
    const task = await openPassOverSession(binary, {
      root: [passOver({ subagent: "coder", objective: "OUTER" }), DONE],
      agents: {
        OUTER: [passOver({ subagent: "second", objective: "INNER" }), returns(), DONE],
        INNER: [gate.step, returns(), DONE],
      },
    })
    const turn = task.say("Go.").catch(() => "aborted")
    await gate.reached
    const [outer = ""] = await task.children()
    const [inner = ""] = await task.children(outer)
    const asked = task.model.requests.length
    await abortAll(task, [task.sessionID, outer, inner])
    const areCancelled = () => passStates(task.project).join() === "cancelled,cancelled" || undefined
    await eventually("the end of both passes", areCancelled)
    gate.open()
    // OpenCode says idle a moment before the turn is over, and would end the next one with it (1.2.15).
    expect(await turn).toBe("aborted")
    // Pending requests would be made by the end of another turn.
    await task.say("And now?")
    expect(task.model.requests.length).toBe(asked + 1)
    expect(sources(task.project)).toEqual(["a.ts"])
  })

  // The versions tell plugins of the exit before and after the abort of their tools.
  test(
    promised(
      ["pass-over.A4", "pass-over.B3"],
      "what is done when OpenCode ends is a late result, told at the next start",
    ),
    async () => {
      const gate = createGate(write("src/never.ts"))
      const task = await openPassOverSession(binary, {
        root: [passOver({ subagent: "coder", objective: "CUT-SHORT" }), DONE],
        agents: { "CUT-SHORT": [write("src/done.ts"), gate.step, returns(), DONE] },
      })
      await task.sayLater(START)
      await gate.reached
      await task.restart()
      gate.open()
      const isKept = () => passStates(task.project).join() === "returned" || undefined
      await eventually("its result", isKept)
      const [record] = passRecords(task.project)
      expect(record?.state).toMatchObject({ is_late: true, undecided: ["src/done.ts"] })
      // On 1.3.2 the end of the aborted turn may end this one as well.
      await task.sayLater("What happened?")
      const told = await announcement(task)
      expect(told).toContain(`${record?.request.pass_over_id}: coder → aborted (came late)`)
      expect(told).toContain(`pass_over_apply {"pass_over_id":"${record?.request.pass_over_id}"}`)
      expect(sources(task.project)).toEqual(["a.ts"])
    },
  )

  once(promised(["pass-over.A1", "pass-over.B1"], "what runs beside a return is waited for"), async () => {
    const slow = { tool: "bash", input: { command: "sleep 1; echo late > src/late.ts", description: "writes late" } }
    const done = { tool: "pass_over_return", input: { status: "completed", summary: "Written." } }
    const task = await openPassOverSession(binary, {
      root: [passOver({ subagent: "coder", objective: "BOTH-AT-ONCE" }), DONE],
      agents: { "BOTH-AT-ONCE": [{ tools: [slow, done] }, DONE] },
    })
    await task.say("Go.")
    const [answer = ""] = await task.answers()
    expect(answer).toContain("Written.")
    expect(answer).toContain("added src/late.ts")
  })

  once(promised(["pass-over.D2", "pass-over.A1"], "closing words hold nothing up"), async () => {
    const [words, next] = [createGate(DONE), createGate(DONE)]
    const task = await openPassOverSession(binary, {
      root: [passOver({ subagent: "audit", objective: "TALK-ON" }), next.step],
      agents: { "TALK-ON": [returns(), words.step] },
    })
    await task.sayLater("Go.")
    await Promise.all([next.reached, words.reached])
    const [child = ""] = await task.children()
    await abortAll(task, [task.sessionID, child])
    words.open()
    next.open()
  })

  once(promised("pass-over.A4", "an asynchronous result is announced once, with a compaction in between"), async () => {
    const gate = createGate(returns({ decision: "approved" }))
    const task = await openPassOverSession(binary, {
      root: [passOver({ subagent: "audit", objective: "ASYNC-WORK", async: true }), DONE],
      agents: { "ASYNC-WORK": [gate.step, DONE] },
    })
    await task.say("Go.")
    expect((await task.answers())[0]).toContain("audit is at work.")
    await compact(task, task.sessionID)
    gate.open()
    await announcement(task)
    await task.say("And now?")
    const notices = (await textsOf(task)).filter((text) => NOTICE.test(text))
    expect(notices).toEqual([expect.stringContaining("decision: approved")])
  })

  once(
    promised(
      ["pass-over.A4", "pass-over.B3", "pass-over.B7"],
      "what stood still goes on, what was taken over says so, what was killed is ended",
    ),
    async () => {
      const working = (name: string) => {
        const gate = createGate(write(`src/${name}-late.ts`))
        return { gate, steps: [write(`src/${name}.ts`), gate.step, returns(), DONE] }
      }
      const pass = (objective: string) => passOver({ subagent: "coder", objective })
      const [still, taken, cut] = [working("still"), working("taken"), working("cut")]
      const task = await openSharedPasses(binary, {
        root: [
          (request) => pass(newestWords(request).includes("Cut it.") ? "CUT-OFF" : "STOOD-STILL"),
          pass("TAKEN-OVER"),
          DONE,
        ],
        agents: { "STOOD-STILL": still.steps, "TAKEN-OVER": taken.steps, "CUT-OFF": cut.steps },
      })
      await using server = await openServer(task)
      const { client, pid } = server
      // The server ends before the project is closed, and waits for its requests.
      using _gates = {
        [Symbol.dispose]: () => {
          for (const { gate } of [still, taken, cut]) gate.open()
        },
      }
      const begin = async (text: string): Promise<string> => {
        const id = await createSession({ client })
        await client.session.promptAsync({ path: { id }, body: { parts: [{ type: "text", text }] } })
        return id
      }

      /** Stops the process for what looks like an hour, while another one looks at the passes. */
      const standStill = async (holder: (lock: string) => string): Promise<PassRecord | undefined> => {
        const record = passRecords(task.project).at(-1)
        const folder = join(task.project.directory, ".opencode/state/pass-over")
        const swept = join(folder, ".removed", "swept")
        const lock = join(folder, record?.request.pass_over_id ?? "", "work.lock")
        mkdirSync(swept, { recursive: true })
        await suspend(pid)
        try {
          writeFileSync(lock, holder(readFileSync(lock, "utf8")))
          utimesSync(lock, HOUR_AGO, HOUR_AGO)
          await task.restart()
          await task.say("Hello.")
          // What is swept is swept after the passes.
          await eventually("the look at the passes", () => !existsSync(swept) || undefined)
          return passRecords(task.project).at(-1)
        } finally {
          process.kill(pid, "SIGCONT")
        }
      }
      const first = await begin(START)
      await still.gate.reached
      expect(await standStill((lock) => lock)).toMatchObject({ state: { state: "waiting_for_return" } })
      still.gate.open()
      await taken.gate.reached
      const [whole] = await toolAnswers(task, first)
      for (const name of ["still", "still-late"]) expect(whole).toContain(`- added src/${name}.ts`)

      // As one in another container, whose processes cannot be seen from here.
      const elsewhere = await standStill((lock) => lock.replace(/^(\w+\n\d+\n).*/, "$1elsewhere"))
      expect(elsewhere).toMatchObject({ state: { state: "returned", undecided: ["src/taken.ts"] } })
      taken.gate.open()
      const lost = await eventually("what its originator is told", async () => (await toolAnswers(task, first))[1])
      expect(lost).toContain("another process took the pass pass_")
      expect(lost).not.toContain("src/taken-late.ts")
      expect(
        turnsOf(task).filter((text) => text.includes("later ones are lost")),
        "its child",
      ).not.toEqual([])

      const second = await begin(`${START} Cut it.`)
      await cut.gate.reached
      process.kill(pid, "SIGKILL")
      // Its end, since passes of a living process are left alone.
      await server.stop()
      cut.gate.open()
      await task.restart()
      await task.say("What happened?", second)
      const [, , { request, output } = {}] = await eventually("its end", () => {
        const records = passRecords(task.project)
        return records[2]?.output ? records : undefined
      })
      // It failed, so that it is told at once.
      const ending = `${request?.pass_over_id}: coder → failed (came late)`
      await eventually("the announcement", () => turnsOf(task).some((text) => text.includes(ending)) || undefined)
      expect(output).toMatchObject({ status: "failed", error: { message: "OpenCode ended while the subagent worked" } })
      expect(output?.artifacts).toContainEqual(expect.objectContaining({ path: "src/cut.ts", change: "added" }))
      expect(sources(task.project)).toEqual(["a.ts"])
    },
  )

  test(
    promised(
      ["pass-over.A6", "passes.A3", "passes.A4"],
      "the question says what is approved, always spares no critical finding, and nothing but that is asked",
    ),
    async () => {
      const finding = { severity: "critical", path: "src/a.ts", line: 1, message: "The table is empty" }
      const results = [{}, {}, { decision: "changes_requested", findings: [finding] }, { status: "partial" }]
      let made = 0
      const ask = passOver({ subagent: "coder", objective: "ASK-ME" })
      const task = await openPassOverSession(binary, {
        root: [passOver({ subagent: "audit", objective: "ASK-ME" }), ask, ask, ask, ask, DONE],
        agents: {
          "ASK-ME": [() => (made++ === 0 ? returns({ findings: [finding] }) : returns(results[made - 2])), DONE],
        },
        policy: "{}",
        config: { permission: { edit: "allow", pass_over_result: "ask" } },
      })
      if (!canToolsAsk(binary)) {
        await task.say("Go.")
        const unasked = expect.stringContaining("This OpenCode cannot ask whether it may go back")
        expect(await task.answers()).toEqual([
          expect.not.stringContaining("cannot ask"),
          unasked,
          unasked,
          unasked,
          expect.anything(),
        ])
        return
      }
      const asked: string[] = []
      await onEvents(task, async (type, { id, sessionID, permission }) => {
        if (type !== "permission.asked") return
        asked.push(String(permission))
        await task.client.postSessionIdPermissionsPermissionId({
          path: { id: String(sessionID), permissionID: String(id) },
          body: { response: asked.length === 1 ? "always" : "reject" },
        })
      })
      await task.say("Go.")
      expect(asked).toEqual([
        "pass_over_result coder: completed, 0 files read, 0 files changed. Asked since auto_return is false.",
        "pass_over_result coder: changes requested, 1 finding, 0 files read, 0 files changed. critical src/a.ts:1: The table is empty. Asked since it has a critical finding.",
      ])
      const [reviewed, released, unasked, refused, partial] = await task.answers()
      expect(reviewed).toContain("critical src/a.ts:1: The table is empty")
      for (const answer of [released, unasked]) expect(answer).toContain("coder → completed")
      expect(refused).toContain("the user has not approved the result of coder")
      expect(partial).toContain("coder → partial")
      const decided = auditLines(task.project).flatMap(({ event, decided_by: by }) =>
        ["released", "withheld"].includes(event) ? [`${event} by ${by}`] : [],
      )
      expect(decided).toEqual(["released by user", "released by user", "withheld by user"])
    },
  )

  once(
    promised("passes.A3", "a partial result names what was refused, and a time-out has its code in the audit"),
    async () => {
      const gate = createGate(returns())
      const task = await openPassOverSession(binary, {
        root: [
          passOver({ subagent: "coder", objective: "MAKE-IT" }),
          passOver({ subagent: "audit", objective: "WAIT-LONG", override: { timeout_ms: 1_000 } }),
          DONE,
        ],
        agents: {
          "MAKE-IT": [{ tool: "bash", input: { command: "make all", description: "Build" } }, { text: "I could not." }],
          "WAIT-LONG": [gate.step, DONE],
        },
        policy: { defaults: { auto_return: false } },
        config: { permission: { bash: { "*": "allow", "make *": "deny" } } },
      })
      await task.say("Go.")
      gate.open()
      const [partial, late] = await task.answers()
      expect(partial).toMatch(/coder → partial[\s\S]*It was refused: bash make all/)
      expect(late).toContain("E010 SUBAGENT_TIMEOUT")
      const timedOut = auditLines(task.project).find(({ event }) => event === "timed_out")
      expect(timedOut?.error).toMatchObject({ code: "E010" })
    },
  )
})

describe.skipIf(!isTmuxHere()).each(BOTH_ENDS)("OpenCode $version in a terminal", (binary) => {
  test(
    promised("passes.A4", "the dialog shows verdict, counts, the critical finding and why it is asked"),
    async () => {
      const finding = { severity: "critical", path: "src/a.ts", line: 1, message: "The table is empty" }
      const task = await openPassOverProject(binary, {
        root: [passOver({ subagent: "coder", objective: "ASK-ME" }), DONE],
        agents: { "ASK-ME": [returns({ decision: "changes_requested", findings: [finding] }), DONE] },
        config: { permission: { edit: "allow", pass_over_result: "ask" } },
      })
      const tui = await startTui(binary, task.project)
      try {
        await tui.send("Go.")
        const screen = await tui.shows("Permission required")
        const dialog = screen.replaceAll(/[\s┃│]+/g, " ")
        for (const part of [
          "coder: changes requested, 1 finding, 0 files read, 0 files changed.",
          "critical src/a.ts:1: The table is empty.",
          "Asked since it has a critical finding.",
        ])
          expect(dialog).toContain(part)
      } finally {
        await tui.stop()
      }
    },
  )
})

// It waits for a time-out, so that one end is enough by day.
describe.each(endsOf(1))("OpenCode $version", (binary) => {
  test(promised("pass-over.E5", "a subagent that hangs is ended; the next attempt has fresh files"), async () => {
    const gate = createGate(DONE)
    let attempts = 0
    const first = (): ModelReply => {
      attempts++
      return { tool: "write", input: { filePath: attempts === 1 ? "src/half.ts" : "src/made.ts", content: "x\n" } }
    }
    const task = await openPassOverSession(binary, {
      root: [passOver({ subagent: "coder", objective: "HANG-ONCE" }), DONE],
      agents: { "HANG-ONCE": [first, () => (attempts === 1 ? gate.step() : returns()), DONE] },
      policy: { defaults: { timeout_ms: deadline(4_000), on_timeout: "stop", max_retries: 1, retry_delay_ms: 0 } },
    })
    await task.say("Go.")
    gate.open()
    const [answer = ""] = await task.answers()
    expect(answer).toContain("Changed files (1):\n- added src/made.ts")
    const children = await task.children()
    expect(children).toHaveLength(2)
    // OpenCode ends a session some moments after it was aborted.
    await eventually("the end of both attempts", async () => (await task.busy(children)).length === 0 || undefined)
  })
})
