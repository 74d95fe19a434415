import { existsSync, rmSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { signalIfThere } from "../../../.opencode/baton/host/process.ts"
import { argumentsOf, isAlive } from "../../../.opencode/baton/host/process-identity.ts"
import { findMarked } from "../../../.opencode/baton/work/processes.ts"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  bash,
  deadline,
  eventually,
  LEDGER_WAIT_MS,
  type ModelReply,
  newestOrder,
  type Script,
  testsOnce,
} from "../../support/index.ts"
import { isProbe, openWorkProject, stepOf, taskOf, type WorkProject } from "../../support/opencode/work-project.ts"

/** An agent that does these steps and says that the task is done. */
const doing =
  (...steps: ((task: string) => ModelReply)[]): Script =>
  (request) => {
    const task = taskOf(request)
    const all = [...steps, () => bash(`prog done ${task}`)]
    return all[stepOf(request)]?.(task) ?? { text: "It is done." }
  }

/** A step that does not end. By default OpenCode ends a command after two minutes. */
const HANGING: ModelReply = {
  tool: "bash",
  input: { command: "sleep 600 & echo $! >shell.pid; sleep 600", description: "A step", timeout: 600_000 },
}

/** The plugin names a run's session in the background: a run that is ended before begins anew, and is no attempt. */
const sessionNamed = ({ ledger }: WorkProject, id: string) =>
  eventually(
    "the session of the run",
    async () => (await ledger.prog("runs", id, "--json")).includes('"session_id": "ses_') || undefined,
    ...LEDGER_WAIT_MS,
  )

const ended = (events: Awaited<ReturnType<WorkProject["work"]>>["events"]) =>
  events.filter(({ event }) => event === "ended").map(({ kind, status }) => `${kind}: ${status}`)

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  once(promised("work.B1", "two workers work through a queue of 20 tasks with dependencies"), async () => {
    const work = await openWorkProject(
      binary,
      doing((task) => bash(`echo ${task} >>done.txt`)),
    )
    const ids: string[] = []
    // A tree: each waits for the one before half its number.
    const earlier = (n: number): string => ids[(n - 1) >> 1] ?? ""
    for (let n = 0; n < 20; n++) {
      ids.push(await work.add(`Task ${n}`))
      if (n > 0) await work.ledger.prog("blocks", earlier(n), ids[n] ?? "")
    }
    const nights = await Promise.all([work.work(), work.work()])
    expect(nights.map(({ exitCode, stderr }) => [exitCode, stderr])).toEqual([
      [0, ""],
      [0, ""],
    ])
    const order = work.project.read("done.txt").trim().split("\n")
    expect(order.toSorted()).toEqual(ids.toSorted())
    for (const [n, id] of ids.entries()) {
      expect(await work.ends(id)).toEqual(["Run 1 ended: done"])
      if (n > 0) expect(order.indexOf(earlier(n))).toBeLessThan(order.indexOf(id))
    }
    expect(await work.ledger.prog("claims")).toBe("No claims")
    const report = await work.baton(["report", "-p", "demo", "--since", "00:00"])
    expect(report.stdout).toContain("20 tasks, 20 done")
  })

  test(
    promised("work.B2", "a provider that fails in the night stops it after three runs, and no task is lost"),
    async () => {
      const work = await openWorkProject(binary, () => ({ status: 401, message: "invalid api key" }))
      const ids = [await work.add("First"), await work.add("Second")]
      const { exitCode, events } = await work.work()
      expect(exitCode).toBe(2)
      expect(ended(events)).toEqual(["provider: open", "provider: open", "provider: open"])
      expect(events.at(-1)).toMatchObject({
        event: "state",
        reason: expect.stringContaining("3 runs in a row came to nothing"),
      })
      expect(await Promise.all(ids.map(work.statusOf))).toEqual(["open", "open"])
      expect(await work.ledger.prog("claims")).toBe("No claims")
      expect((await work.ends(ids[0] ?? ""))[0]).toMatch(/^Run 1 ended: provider: 401 .*invalid api key.*; open again$/)
    },
  )

  once(
    promised("work.B2", "a provider that is busy for a while costs no attempt, and one that stays so stops it"),
    async () => {
      let refused = 3
      let probes = 0
      const work = await openWorkProject(
        binary,
        (request) => {
          // The first question of the second work is answered yet.
          if (isProbe(request)) return ++probes > 2 ? { status: 429, message: "slow down" } : { text: "Yes." }
          if (refused-- > 0) return { status: 429, message: "slow down" }
          return doing()(request)
        },
        {},
        "scripted",
      )
      const first = await work.add("First")
      expect((await work.work()).exitCode).toBe(0)
      expect(await work.ends(first)).toEqual(["Run 1 ended: done"])
      refused = Number.POSITIVE_INFINITY
      const second = await work.add("Second")
      const { exitCode, events } = await work.work(["--stuck", `${deadline(15_000) / 1_000}s`])
      expect(exitCode).toBe(2)
      expect(ended(events)).toEqual(["provider: open", "provider: open", "provider: open"])
      expect((await work.ends(second))[0]).toMatch(/^Run 1 ended: provider: .*slow down.*; open again$/)
    },
  )

  once(promised(["work.B2", "queue.A2"], "a model that only talks blocks its task and stops the work"), async () => {
    const work = await openWorkProject(binary, () => ({ text: "I will begin right away." }))
    const id = await work.add("First")
    const { exitCode, events } = await work.work()
    expect(exitCode).toBe(2)
    expect(ended(events)).toEqual(["idle: open", "idle: open", "idle: blocked"])
    expect((await work.ends(id)).at(-1)).toContain("blocked: 3 runs: idle, idle, idle")
    expect(events.filter(({ event }) => event === "started").map(({ isResumed }) => isResumed)).toEqual([
      false,
      true,
      false,
    ])
  })

  test(promised("work.B3", "a killed agent goes on in its session, and its shells are ended"), async () => {
    let told = ""
    const work = await openWorkProject(binary, (request) => {
      const order = newestOrder(request)
      // OpenCode 1.2.15 may note a call's input after the call has begun: the past to look for is of one that came to its end.
      if (!order.includes("Go on.")) return stepOf(request) === 0 ? bash("echo the first step") : HANGING
      told = request.conversation
      return doing()(request)
    })
    const id = await work.add("First")
    const running = work.work()
    await eventually("the shell", () => existsSync(join(work.project.directory, "shell.pid")) || undefined)
    const shell = Number(await eventually("its pid", () => work.project.read("shell.pid").trim() || undefined))
    const agent = await eventually("the agent", () =>
      // A program of the ledger's is marked, too, and `bun run` is its command.
      findMarked("BATON_RUN", `${id}.1`).find((pid) => argumentsOf(pid).join(" ").includes("run --format json")),
    )
    await sessionNamed(work, id)
    signalIfThere(agent, "SIGKILL")
    const { exitCode, events } = await running
    expect(exitCode).toBe(0)
    expect(ended(events)).toEqual(["killed: open", "done: done"])
    expect(isAlive(shell)).toBe(false)
    expect(events.filter(({ event }) => event === "started").map(({ isResumed }) => isResumed)).toEqual([false, true])
    expect(told).toContain("Your process was ended in the middle of the work.")
    expect(told, "the session's own past").toContain("echo the first step")
  })

  once(
    promised("work.B3", "an agent that gets stuck is ended with all that it started, and the next begins anew"),
    async () => {
      let runs = 0
      const work = await openWorkProject(binary, (request) => {
        if (stepOf(request) === 0) runs++
        return runs === 1 ? HANGING : doing()(request)
      })
      await work.add("First")
      const { exitCode, events } = await work.work(["--stuck", `${deadline(15_000) / 1_000}s`])
      // The second agent's start has to take less than that on a busy machine.
      expect(ended(events)).toEqual(["stuck: open", "done: done"])
      expect(exitCode).toBe(0)
      expect(events.filter(({ event }) => event === "started").map(({ isResumed }) => isResumed)).toEqual([
        false,
        false,
      ])
      expect(isAlive(Number(work.project.read("shell.pid").trim()))).toBe(false)
    },
  )

  once(promised("work.B3", "a killed baton work leaves nothing that the next one does not find"), async () => {
    let runs = 0
    const work = await openWorkProject(binary, (request) => {
      if (stepOf(request) === 0) runs++
      return runs === 1 ? HANGING : doing()(request)
    })
    const id = await work.add("First")
    let pid = 0
    void work.work([], {
      onStart: (started) => {
        pid = started
      },
    })
    const shell = Number(
      await eventually("the shell", () =>
        existsSync(join(work.project.directory, "shell.pid"))
          ? work.project.read("shell.pid").trim() || undefined
          : undefined,
      ),
    )
    expect((await work.baton(["work", "status", "-p", "demo"])).stdout).toContain(`${id}  run 1`)
    await sessionNamed(work, id)
    signalIfThere(pid, "SIGKILL")
    await eventually("its end", () => !isAlive(pid) || undefined)
    expect(isAlive(shell), "nobody was there to end it").toBe(true)
    const { exitCode, events } = await work.work()
    expect(exitCode).toBe(0)
    expect(events[0]?.text).toMatch(/was killed; \d+ of its processes are ended/)
    expect(isAlive(shell)).toBe(false)
    expect(events.find(({ event }) => event === "started")).toMatchObject({ task: id, run: 2, isResumed: true })
    expect(await work.ends(id)).toEqual([
      "Run 1 ended: killed: its process is gone; open again (attempt 1 of 3)",
      "Run 2 ended: done",
    ])
    expect(await work.ledger.prog("workers")).toBe("No workers")
  })

  once(
    promised(["queue.A2", "work.B3"], "a question waits for a person, and the answer goes to the same session"),
    async () => {
      const answers: string[] = []
      const work = await openWorkProject(binary, (request) => {
        const order = newestOrder(request)
        if (!order.includes("A person answers:"))
          return stepOf(request) === 0 ? bash("true") : { text: "Shall I drop Node 18?" }
        answers.push(request.conversation)
        return doing()(request)
      })
      const [id, other] = [await work.add("First"), await work.add("Second")]
      await work.ledger.prog("cancel", other)
      expect((await work.work()).exitCode).toBe(0)
      expect(await work.statusOf(id)).toBe("blocked")
      await work.ledger.prog("unblock", id, "No, keep it.")
      expect(ended((await work.work()).events)).toEqual(["done: done"])
      expect(answers[0]).toContain("A person answers: No, keep it.")
      expect(answers[0], "the session's own past").toContain("Shall I drop Node 18?")
    },
  )

  once(
    promised("work.B4", "done is checked where the person allowed it: red opens the task with its output"),
    async () => {
      let seen = ""
      const work = await openWorkProject(binary, (request) => {
        if (newestOrder(request).includes("The check of your work failed")) {
          seen = newestOrder(request)
          return doing(() => bash("touch fixed"))(request)
        }
        // Not done before the test has taken the base away.
        return doing(() => bash("while test -e base; do sleep 0.1; done"))(request)
      })
      const check = "test -e base || test -e fixed || { echo 2 tests failed; exit 1; }"
      work.project.write("base", "")
      const id = await work.add("First", "--dod", `It is green.\n- check: ${check}`)
      const dependent = await work.add("Second")
      await work.ledger.prog("blocks", id, dependent)
      const running = work.work(["--checks", "-n", "2"])
      // Green on the base, and red once the agent works.
      await eventually(
        "the first run",
        async () => (await work.ledger.prog("claims")).includes(id) || undefined,
        ...LEDGER_WAIT_MS,
      )
      rmSync(join(work.project.directory, "base"))
      const { exitCode, events } = await running
      expect(exitCode).toBe(0)
      expect(ended(events.filter(({ task }) => task === id))).toEqual(["check red: open", "done: done"])
      expect(events.filter(({ event }) => event === "check").map(({ outcome }) => outcome)).toEqual(["red", "green"])
      expect(seen).toContain("2 tests failed")
      const begun = events.flatMap(({ event, task }, at) => (event === "started" && task === dependent ? [at] : []))
      expect(begun, "what waits for it").toHaveLength(1)
      expect(begun[0]).toBeGreaterThan(events.findIndex(({ outcome }) => outcome === "green"))
      const log = await work.ledger.messages(id)
      expect(log).toContain(`Check red: ${check}\n2 tests failed`)
      expect(log).toContain(
        "Run 1 ended: check red: test -e base || test -e fixed || { echo 2 tests failed; exit 1; }: 2 tests failed; open again (attempt 1 of 3)",
      )
    },
  )

  once(
    promised("work.B4", "a check that an agent added meanwhile is not run, and one that it took out is"),
    async () => {
      const work = await openWorkProject(binary, (request) => {
        const task = taskOf(request)
        const steps =
          task === first
            ? [bash(`prog edit ${second} --dod "check: touch evil"`)]
            : task === third
              ? [bash(`touch broken; prog edit ${task} --dod ""`)]
              : []
        return doing(...steps.map((step) => () => step))(request)
      })
      const [first, second] = [await work.add("First"), await work.add("Second")]
      const third = await work.add("Third", "--dod", "check: test ! -e broken")
      const { events } = await work.work(["--checks", "--attempts", "2"])
      expect(existsSync(join(work.project.directory, "evil"))).toBe(false)
      expect(await work.ledger.messages(second)).toContain(
        "Check not run, since it was not there when the work began: touch evil",
      )
      expect(await work.statusOf(second)).toBe("done")
      expect(ended(events).slice(2)).toEqual(["check red: open", "check red: blocked"])
      const told = work.model.received("turn").map(newestOrder)
      expect(
        told.some((order) => order.includes("The check of your work failed: test ! -e broken")),
        third,
      ).toBe(true)
      const unchecked = await work.add("Fourth", "--dod", "check: touch evil")
      expect(ended((await work.work()).events), "without --checks").toEqual(["done: done"])
      expect(existsSync(join(work.project.directory, "evil")), unchecked).toBe(false)
    },
  )

  once(promised("work.B2", "where something is wrong before the begin, no task is touched"), async () => {
    const work = await openWorkProject(binary, doing())
    work.project.write(".opencode/baton.json", JSON.stringify({ autoTask: true }))
    const id = await work.add("First", "--dod", "check: echo 1 test failed; exit 1")
    const unknown = await work.work(["--", "--model", "scripted/none"])
    expect(unknown.exitCode).toBe(1)
    expect(unknown.stderr).toMatch(/^work: the model does not answer: .+\nNo task was touched\./)
    const red = await work.work(["--checks"])
    expect(red.exitCode).toBe(1)
    expect(red.stderr).toContain("the check is red before any work: echo 1 test failed; exit 1: 1 test failed")
    const ledger = await work.work([], { environment: { PROG_DB: "/nowhere/prog.db" } })
    expect(ledger.exitCode).toBe(1)
    expect(await work.ledger.messages(id)).toEqual([])
    expect(JSON.parse(await work.ledger.prog("runs", id, "--json"))).toEqual([])
    expect(await work.ledger.prog("list", "-p", "demo", "--status", "open"), "none is made of its question").toMatch(
      /^ID.*\nts-\w+ .*First$/,
    )
  })
})
