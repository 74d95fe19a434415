import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  ALL_LINES,
  bash,
  deadline,
  eventually,
  killOpenCode,
  LEDGER_WAIT_MS,
  newestOrder,
  openTaskProject,
  type Script,
  type TaskProject,
} from "../../support/index.ts"

type Run = {
  n: number
  kind: string
  detail: string
  worker: string
  session_id: string
  tools: number
  tokens: number
}

const runsOf = async ({ ledger, taskID }: TaskProject): Promise<Run[]> =>
  JSON.parse(await ledger.prog("runs", taskID, "--json"))

/** One round of the loop of docs/workers.md. */
const round = async (task: TaskProject, options: Parameters<TaskProject["run"]>[1] = {}): Promise<string> => {
  const id = await task.ledger.prog("claim", "--next", "-p", "demo", "--as", "worker-1", "--backoff", "0")
  await task.run(task.message.replace(task.taskID, id), { environment: { BATON_HOLDER: "worker-1" }, ...options })
  return id
}

/** The agent's steps of one run, one after the other. */
const steps =
  (...replies: ReturnType<Script>[]): Script =>
  (request) => {
    const done = newestOrder(request).split("[tool]").length - 1
    return replies[done] ?? { text: "I stop here." }
  }

type Case = {
  script: (id: () => string) => Script
  status: string
  kind: string
  log: RegExp
  config?: Record<string, unknown>
  context?: number
}

const CASES: Record<string, Case> = {
  "a provider that answers 401": {
    script: () => () => ({ status: 401, message: "invalid api key" }),
    status: "open",
    kind: "provider",
    log: /^Run 1 ended: provider: 401 .*invalid api key.*; open again$/,
  },
  "a model that only talks": {
    script: () => () => ({ text: "I will begin right away." }),
    status: "open",
    kind: "idle",
    log: /^Run 1 ended: idle: I will begin right away\.; open again \(attempt 1 of 3\), not before /,
  },
  "a model that stops before it is done": {
    script: () => steps(bash("true")),
    status: "open",
    kind: "unfinished",
    log: /^Run 1 ended: unfinished: I stop here\.; open again \(attempt 1 of 3\)$/,
  },
  "a task that is done": {
    script: (id) => (request) => steps(bash(`prog done ${id()}`))(request),
    status: "done",
    kind: "done",
    log: /^Run 1 ended: done$/,
  },
  "a task that waits for its merge": {
    script: (id) => (request) => steps(bash(`prog review ${id()}`))(request),
    status: "reviewing",
    kind: "reviewing",
    log: /^Run 1 ended: reviewing$/,
  },
  "a question as the last words": {
    script: () => steps(bash("true"), { text: "Two ways are open.\nShall I drop Node 18?" }),
    status: "blocked",
    kind: "question",
    log: /^Run 1 ended: question: Shall I drop Node 18\?; blocked until a person answers: prog unblock ts-\w+ "answer"$/,
  },
  "a line in the log that says what is missing": {
    script: (id) => (request) => steps(bash(`prog log ${id()} "Blocked: no access to the registry"`))(request),
    status: "blocked",
    kind: "question",
    log: /^Run 1 ended: question: no access to the registry; blocked /,
  },
  "a permission that is never given": {
    script: () => steps(bash("true"), bash("rm -rf build")),
    config: { permission: { bash: { "*": "allow", "rm *": "ask" } } },
    status: "blocked",
    kind: "permission refused",
    log: /^Run 1 ended: permission refused: bash: rm -rf build.*; blocked /,
  },
  "a context that is too small": {
    script: () => () => ({ status: 400, message: "This model's maximum context length is 8192 tokens." }),
    status: "open",
    kind: "context",
    log: /^Run 1 ended: context: .*maximum context length.*; open again \(attempt 1 of 3\)$/,
  },
}

describe.each(ALL_LINES)("OpenCode $version", (binary) => {
  for (const [name, { script, config, status, kind, log }] of Object.entries(CASES)) {
    test(promised(["queue.A1", "queue.A2"], `a run ends and gives its task back: ${name}`), async () => {
      let id = ""
      const task = await openTaskProject(binary, (request) => script(() => id)(request), config ? { config } : {})
      id = task.taskID
      expect(await round(task)).toBe(id)
      const shown = await task.ledger.show(id)
      expect(shown.logs.at(-1)?.message).toMatch(log)
      expect(shown.status).toBe(status)
      expect(await task.ledger.prog("claims")).toBe("No claims")
      const [run, ...others] = await runsOf(task)
      expect(others).toEqual([])
      expect(run).toMatchObject({ n: 1, kind, worker: "worker-1", session_id: expect.stringMatching(/^ses_/) })
      if (kind === "unfinished") expect(run).toMatchObject({ tools: 1, tokens: 1020 })
    })
  }

  test(
    promised(["queue.A1", "queue.A2", "queue.A3"], "a killed agent's task is handed out again, three times at most"),
    async () => {
      const task = await openTaskProject(binary, steps(bash("sleep 600")))
      const kill = async (): Promise<string> => {
        let pid = 0
        const before = task.model.received("turn").length
        const running = round(task, {
          onStart: (started) => {
            pid = started
          },
        })
        await eventually("the agent at work", () => task.model.received("turn").length > before || undefined)
        const isBound = async () => (await task.ledger.prog("claims")).includes("session ses_") || undefined
        await eventually("its claim", isBound, ...LEDGER_WAIT_MS)
        await killOpenCode(pid)
        return running
      }
      for (const _ of [1, 2, 3]) expect(await kill()).toBe(task.taskID)
      await expect(round(task)).rejects.toThrow(/no task of project demo is ready and free/)
      const { status, logs } = await task.ledger.show(task.taskID)
      expect(status).toBe("blocked")
      const ends = logs.map(({ message }) => message).filter((message) => message.startsWith("Run "))
      expect(ends).toEqual([
        "Run 1 ended: killed: its process is gone; open again (attempt 1 of 3)",
        "Run 2 ended: killed: its process is gone; open again (attempt 2 of 3)",
        `Run 3 ended: killed: its process is gone; blocked: 3 runs: killed, killed, killed; prog unblock ${task.taskID} opens it`,
      ])
      await task.ledger.prog("unblock", task.taskID, "Use", "the", "short", "path.")
      let seen = ""
      const answered = task.run(task.message, { environment: { BATON_HOLDER: "worker-1" }, onStart: () => {} })
      void answered
      seen = await eventually("the next request", () => task.model.received("turn")[3]?.conversation, deadline(20_000))
      expect(seen).toContain("Unblocked: Use the short path.")
    },
  )

  test(promised("queue.A1", "a run that no queue handed out is noted, and leaves its task as it is"), async () => {
    const task = await openTaskProject(binary, steps(bash("true")))
    await task.runWell(task.message)
    expect(await runsOf(task)).toMatchObject([{ n: 1, kind: "unfinished", worker: "" }])
    const { status, logs } = await task.ledger.show(task.taskID)
    expect(status).toBe("in_progress")
    expect(logs.filter(({ message }) => message.startsWith("Run "))).toEqual([])
  })
})
