import { execFileSync } from "node:child_process"
import { existsSync } from "node:fs"
import { hostname } from "node:os"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { findMarked } from "../../../.opencode/baton/work/processes.ts"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  bash,
  deadline,
  eventually,
  LEDGER_WAIT_MS,
  NEWEST_OR_ALL,
  newestOrder,
  testsOnce,
} from "../../support/index.ts"
import { openServer } from "../../support/opencode/model-project.ts"
import { GIT_IDENTITY } from "../../support/opencode/test-project.ts"
import { isTmuxHere, startTerminal } from "../../support/opencode/tui.ts"
import { BATON, openWorkProject, stepOf, taskOf, type WorkProject } from "../../support/opencode/work-project.ts"
import { collectToasts, createSession } from "../sessions.ts"

/** An agent that waits for a file with its task's id, and is done. */
const awaitingFile = (request: { conversation: string }) => {
  const task = taskOf(request)
  if (stepOf(request) > 0) return { text: "It is done." }
  const command = `touch begun.${task}; while ! test -e go.${task}; do sleep 0.1; done; prog done ${task}`
  // By default OpenCode ends a command after two minutes.
  return { tool: "bash", input: { command, description: "A step", timeout: 600_000 } }
}

const begun = ({ project }: WorkProject, id: string) =>
  eventually(`the begin of ${id}`, () => existsSync(join(project.directory, `begun.${id}`)) || undefined)

const git = (directory: string, ...args: string[]): string =>
  execFileSync("git", ["-C", directory, ...GIT_IDENTITY, ...args], { encoding: "utf8" }).trim()

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  const once = testsOnce(binary)

  once(promised("work.B3", "the first SIGINT lets agents come to their end, the second stops them"), async () => {
    const work = await openWorkProject(binary, awaitingFile)
    const [first, second] = [await work.add("First"), await work.add("Second")]
    let pid = 0
    const onStart = (started: number): void => {
      pid = started
    }
    const drained = work.work([], { onStart })
    await begun(work, first)
    process.kill(pid, "SIGINT")
    work.project.write(`go.${first}`, "")
    const { exitCode, events } = await drained
    expect(exitCode).toBe(130)
    expect(events.filter(({ event }) => event === "ended")).toMatchObject([{ task: first, kind: "done" }])
    expect(await work.statusOf(second)).toBe("open")
    const stopped = work.work([], { onStart })
    await begun(work, second)
    process.kill(pid, "SIGINT")
    await eventually(
      "the first signal",
      async () => (await work.baton(["work", "status", "-p", "demo"])).stdout.includes("draining") || undefined,
      ...LEDGER_WAIT_MS,
    )
    process.kill(pid, "SIGINT")
    expect((await stopped).exitCode).toBe(130)
    expect(await work.ends(second)).toEqual(["Run 1 ended: stopped: it was interrupted; open again"])
  })

  once(promised("work.B3", "a SIGINT before the first task ends what was started to look at the model"), async () => {
    const work = await openWorkProject(binary, () => bash("touch begun.probe; sleep 600"), {}, "scripted")
    const id = await work.add("First")
    let pid = 0
    const asked = work.work([], {
      onStart: (started) => {
        pid = started
      },
    })
    await begun(work, "probe")
    process.kill(pid, "SIGINT")
    expect((await asked).exitCode).toBe(130)
    expect(findMarked("BATON_WORK", `${hostname().split(".")[0]}-${pid}`)).toEqual([])
    expect(await work.statusOf(id)).toBe("open")
  })

  once(promised("work.B1", "baton work begins no task from the given time on"), async () => {
    const work = await openWorkProject(binary, awaitingFile)
    const [first, second] = [await work.add("First"), await work.add("Second")]
    // A whole minute that is still to come when the program has started: one that has passed is tomorrow's.
    const soon = new Date(Date.now() + 60_000 + deadline(30_000))
    const clock = [soon.getHours(), soon.getMinutes()].map((part) => String(part).padStart(2, "0")).join(":")
    const working = work.work(["--until", clock])
    await begun(work, first)
    const isDraining = async () =>
      (await work.baton(["work", "status", "-p", "demo"])).stdout.includes("draining") || undefined
    await eventually("the time", isDraining, 90_000 + LEDGER_WAIT_MS[0], LEDGER_WAIT_MS[1])
    work.project.write(`go.${first}`, "")
    const { exitCode, events } = await working
    expect(exitCode).toBe(3)
    expect(events.filter(({ event }) => event === "state")).toMatchObject([
      { state: "draining", reason: "the time is over" },
    ])
    expect([await work.statusOf(first), await work.statusOf(second)]).toEqual(["done", "open"])
  })

  once(promised("work.B3", "status, pause, resume, drain and stop work from another terminal"), async () => {
    const work = await openWorkProject(binary, awaitingFile)
    const ids = [await work.add("First"), await work.add("Second"), await work.add("Third")]
    const [first = "", second = "", third = ""] = ids
    const tell = async (what: string): Promise<string> => (await work.baton(["work", what, "-p", "demo"])).stdout
    const isNow = (state: string) =>
      eventually(state, async () => (await tell("status")).includes(` ${state}`) || undefined, ...LEDGER_WAIT_MS)
    expect((await work.baton(["work", "pause", "-p", "demo"])).stderr).toBe("work: no baton work runs on demo\n")
    const working = work.work()
    await begun(work, first)
    expect(await tell("status")).toContain(`${first}  run 1`)
    expect(await tell("pause")).toMatch(/^\S+-\d+: pause\n$/)
    await isNow("paused")
    work.project.write(`go.${first}`, "")
    await eventually("its end", async () => (await work.ends(first))[0], ...LEDGER_WAIT_MS)
    expect(await work.statusOf(second), "nothing is taken").toBe("open")
    await tell("resume")
    await begun(work, second)
    await tell("drain")
    await isNow("draining")
    work.project.write(`go.${second}`, "")
    expect((await working).exitCode).toBe(0)
    expect(await Promise.all(ids.map(work.statusOf))).toEqual(["done", "done", "open"])
    const again = work.work()
    await begun(work, third)
    await tell("stop")
    expect((await again).exitCode).toBe(130)
    expect(await work.ends(third)).toEqual(["Run 1 ended: stopped: it was stopped by `baton work stop`; open again"])
  })

  once(promised("work.B1", "an agent whose task is canceled is ended, and a budget binds"), async () => {
    let second = ""
    // Tokens are counted at the end of a step.
    const work = await openWorkProject(binary, (request) =>
      taskOf(request) !== second ? awaitingFile(request) : bash(stepOf(request) === 0 ? "true" : "sleep 600"),
    )
    const first = await work.add("First")
    second = await work.add("Second")
    const working = work.work(["--once"])
    await begun(work, first)
    await work.ledger.prog("cancel", first, "Not wanted any more.")
    expect((await working).events.filter(({ event }) => event === "ended")).toMatchObject([{ kind: "canceled" }])
    expect((await work.work(["--budget", "400"])).exitCode).toBe(3)
    expect(await work.ends(second)).toEqual(["Run 1 ended: stopped: the budget is spent; open again"])
  })

  test(
    promised("work.B1", "each task has a worktree and a branch, on the branches of what it waited for"),
    async () => {
      const work = await openWorkProject(binary, (request) => {
        const task = taskOf(request)
        const steps = [
          { tool: "write", input: { filePath: `${task}.txt`, content: `${task}\n` } },
          bash(`ls *.txt >seen-${task}; cat README.md`),
          // What it waited for is done here, and not yet over.
          bash(`prog done ${task}; sleep 3; echo late >${task}-late.txt`),
        ]
        return steps[stepOf(request)] ?? { text: "It is done." }
      })
      const [first, second, third] = [await work.add("First"), await work.add("Second"), await work.add("Third")]
      await work.ledger.prog("blocks", first, second)
      const { directory, environment } = work.project
      git(directory, "config", "user.name", "Test")
      git(directory, "config", "user.email", "test@example.invalid")
      const { exitCode, stderr } = await work.work(["--worktrees", "-n", "2"])
      expect(exitCode, stderr).toBe(0)
      expect(git(directory, "status", "--porcelain"), "the project's own folder is untouched").toBe("")
      expect(git(directory, "show", `baton/${second}:seen-${second}`)).toBe(
        `${[`${first}-late.txt`, `${first}.txt`, `${second}.txt`].toSorted().join("\n")}`,
      )
      const branches = (await work.baton(["work", "branches"])).stdout
      expect(branches).toContain(`baton/${first}  done  1 commit  merges clean  First`)
      expect(await work.ledger.prog("runs", first, "--json")).toContain(`"branch": "baton/${first}"`)
      git(directory, "merge", "-q", "--no-edit", `baton/${second}`)
      git(directory, "commit", "-q", "--allow-empty", "-m", "on main")
      const after = (await work.baton(["work", "branches"])).stdout
      for (const id of [first, second])
        expect(after).toContain(`${id} is closed and merged: its worktree and branch are removed`)
      expect(after).toContain(`baton/${third}  done`)
      expect((await work.baton(["work", "drop", third])).stdout).toMatch(/its last commit was [0-9a-f]{40}/)
      expect(git(directory, "branch", "--list", "baton/*")).toBe("")
      expect(git(directory, "worktree", "list").split("\n")).toHaveLength(1)
      expect(Object.keys(environment)).toContain("XDG_STATE_HOME")
    },
  )

  once(
    promised("work.B1", "a worktree without the bundle, which git does not have, works by the project's own"),
    async () => {
      const work = await openWorkProject(binary, (request) =>
        stepOf(request) === 0 ? bash(`prog done ${taskOf(request)}`) : { text: "It is done." },
      )
      const { directory } = work.project
      git(directory, "rm", "-rq", "--cached", ".opencode", "opencode.json")
      work.project.write(".gitignore", ".opencode\nopencode.json\n")
      git(directory, "add", "-A")
      git(directory, "commit", "-qm", "without the bundle")
      const id = await work.add("First")
      const { exitCode, stderr } = await work.work(["--worktrees"])
      expect(exitCode, stderr).toBe(0)
      expect(await work.ends(id)).toEqual(["Run 1 ended: done"])
      expect(await work.ledger.prog("runs", id, "--json"), "the plugin was there").toMatch(/"session_id": "ses_/)
    },
  )

  once(
    promised("work.B5", "the report says what needs the person, and the next TUI session that it is there"),
    async () => {
      const work = await openWorkProject(binary, (request) => {
        const task = taskOf(request)
        if (newestOrder(request).includes("/task") || task === "") return { text: "Hello." }
        if (task === asking) return stepOf(request) === 0 ? bash("true") : { text: "Shall I drop Node 18?" }
        return stepOf(request) === 0 ? bash(`prog done ${task}`) : { text: "It is done." }
      })
      const done = await work.add("First")
      const asking = await work.add("Second")
      expect((await work.work()).exitCode).toBe(0)
      await using server = await openServer(work)
      const toasts = await collectToasts({ ...work, ...server })
      await createSession({ client: server.client })
      await eventually("the toast", () =>
        toasts.find((toast) => toast.includes("the workers have come to an end: `baton report`")),
      )
      const report = await work.baton(["report"])
      expect(report.stdout).toMatch(/2 tasks, 1 done, 1 blocked/)
      expect(report.stdout).toContain(`Needs you     ${asking}  Second: question: Shall I drop Node 18?`)
      expect(report.stdout).toContain(`prog unblock ${asking} "answer"`)
      const json = JSON.parse((await work.baton(["report", "--since", "00:00", "-p", "demo", "--json"])).stdout)
      expect(json).toMatchObject({ project: "demo", tasks: 2, done: 1, runs: 2, needsYou: [{ task: asking }] })
      expect(json.tokens).toBeGreaterThan(1_000)
      expect(done).not.toBe(asking)
    },
  )
})

describe.skipIf(!isTmuxHere()).each(NEWEST_OR_ALL)("OpenCode $version in a terminal", (binary) => {
  test(promised("work.B5", "a terminal shows a table over the queue while agents work"), async () => {
    const work = await openWorkProject(binary, awaitingFile)
    const id = await work.add("Teach the parser CRLF")
    const environment = { ...work.project.environment, BATON_OPENCODE: binary.path }
    const terminal = startTerminal([BATON, "work", "-p", "demo"], { ...work.project, environment })
    await begun(work, id)
    const screen = await terminal.shows(new RegExp(`${id} +Teach the parser CRLF +#1 `))
    expect(screen).toMatch(/baton work · demo · working/)
    expect(screen).toMatch(/TASK +TITLE +AGENT +SINCE +STEP +COMP +TOKENS +LAST/)
    expect(screen).toContain("0 of 1 done")
    terminal.press("C-c")
    await terminal.shows("draining")
    work.project.write(`go.${id}`, "")
    await terminal.stop()
    await eventually("its end", async () => (await work.ends(id))[0], ...LEDGER_WAIT_MS)
  })
})
