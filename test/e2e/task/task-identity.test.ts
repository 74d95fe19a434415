import { existsSync, readdirSync, renameSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  BRIEF,
  COMPACTING_STEP,
  closeTaskProjects,
  eventually,
  MODEL,
  newestWords,
  openSharedTask,
  openTaskProject,
  type Script,
  type SharedTask,
  type TaskProject,
} from "../../support/index.ts"
import { comparableRequests } from "../../support/model/request-size.ts"

closeTaskProjects()

/** Compacts on COMPACT-NOW, and reports otherwise. */
const onDemand: Script = (request) => {
  if (request.kind === "compaction") return { text: "A summary." }
  const words = newestWords(request)
  return words.includes("COMPACT-NOW") && !words.includes("[tool]") ? COMPACTING_STEP : { text: "Noted." }
}

const lastTurn = ({ model }: Pick<TaskProject, "model">): string => model.received("turn").at(-1)?.conversation ?? ""

const forkOf = async ({ client }: SharedTask, id: string): Promise<string> =>
  (await client.session.fork({ path: { id }, body: {} })).data?.id ?? ""

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(promised("task.B2", "a session resumed after a restart knows its task at once"), async () => {
    const task = await openSharedTask(binary, onDemand)
    const id = await task.say(task.message)
    await task.restart()
    await task.say("COMPACT-NOW", id)
    expect(lastTurn(task)).toContain(`Task: ${task.taskID}`)
    expect(lastTurn(task)).toContain(BRIEF)
    await task.logged("compaction recorded")
    expect(task.project.batonLog().join("\n")).not.toContain("origin=history")
  })

  test(promised("task.B2", "a session from before the bundle was installed is found by its history"), async () => {
    const task = await openSharedTask(binary, onDemand)
    const plugins = join(task.project.directory, ".opencode", "plugins")
    renameSync(plugins, `${plugins}-off`)
    const id = await task.say(task.message)
    await task.restart()
    expect(task.project.batonLog()).toEqual([])
    renameSync(`${plugins}-off`, plugins)
    await task.say("COMPACT-NOW", id)
    expect(lastTurn(task)).toContain(`Task: ${task.taskID}`)
    await task.logged("origin=history")
  })

  test(promised("task.B2", "a session whose first request was refused knows its task in a new process"), async () => {
    let refuses = true
    const task = await openTaskProject(binary, (request) =>
      refuses && request.kind === "turn" ? { status: 401, message: "the key is not valid" } : onDemand(request),
    )
    await task.run(task.message)
    refuses = false
    // 1.2.15 may end before its log names the session.
    const resumed = await task.run("COMPACT-NOW", { args: ["--continue"] })
    expect(resumed.exitCode, resumed.stderr).toBe(0)
    expect(lastTurn(task)).toContain(`Task: ${task.taskID}`)
    expect(lastTurn(task)).toContain(BRIEF)
    expect(task.project.batonLog().join("\n")).toContain("task known from an earlier run")
  })

  test(promised("task.B3", "a later Task line re-binds the session, and the log says so"), async () => {
    const task = await openSharedTask(binary, onDemand)
    const other = await task.ledger.prog("add", "Another task", "-p", "demo")
    const id = await task.say(task.message)
    await task.restart()
    await task.say(`Task: ${other}\nCOMPACT-NOW`, id)
    expect(lastTurn(task)).toContain(`Task: ${other}`)
    expect(lastTurn(task)).not.toContain(`- Task: ${task.taskID}`)
    await task.logged("session changed its task")
    await task.records(1, other)
    expect(await task.records(0)).toEqual([])
  })

  test(promised("task.B2", "a fork of a session works on the same task"), async () => {
    const task = await openSharedTask(binary, onDemand)
    const id = await task.say(task.message)
    const fork = await forkOf(task, id)
    expect(fork).not.toBe(id)
    await task.say("COMPACT-NOW", fork)
    expect(lastTurn(task)).toContain(`Task: ${task.taskID}`)
    expect(lastTurn(task)).toContain(BRIEF)
  })

  test(
    promised(["task.B2", "compaction.C7"], "a fork that is compacted at once knows its task, and records what is new"),
    async () => {
      const task = await openSharedTask(binary, onDemand)
      const id = await task.say(task.message)
      const plain = await forkOf(task, id)
      await task.client.session.summarize({ path: { id: plain }, body: MODEL })
      expect(task.model.received("compaction").at(-1)?.conversation).toContain(`- Task: ${task.taskID}`)
      expect(await task.records(1)).toHaveLength(1)

      await task.say("COMPACT-NOW", id)
      expect(await task.records(2)).toHaveLength(2)
      await task.say("Go on.", await forkOf(task, id))
      expect(lastTurn(task)).toContain("was compacted before this session was forked")
      expect(lastTurn(task)).toContain(`- Task: ${task.taskID}`)
      const { description, logs } = await task.ledger.show(task.taskID)
      expect(logs).toHaveLength(2)
      expect(description).toContain(`(session ${id}, `)
    },
  )

  test(promised("task.B3", "a deleted session leaves no state behind"), async () => {
    const task = await openSharedTask(binary, onDemand)
    const tasksFolder = join(task.project.directory, ".opencode", "state", "tasks")
    const id = await task.say(task.message)
    expect(readdirSync(tasksFolder)).toEqual([`${id}.json`])
    await task.client.session.delete({ path: { id } })
    await eventually("forgetting", () => (readdirSync(tasksFolder).length === 0 ? true : undefined))
  })

  test(promised("task.B4", "without a task the model receives what it receives without the bundle"), async () => {
    const requestsOf = async (bundle: "none" | "project"): Promise<unknown> => {
      const task = await openSharedTask(binary, onDemand, { bundle })
      await task.say("COMPACT-NOW please, there is no task here: Task: re-added tests")
      await task.restart()
      const state = join(task.project.directory, ".opencode", "state")
      // The live state covers every session; without a task no other state is stored.
      const kept = existsSync(state) ? readdirSync(state).filter((name) => !["live", ".gitignore"].includes(name)) : []
      expect(kept).toEqual([])
      return comparableRequests(task.model, task.project)
    }
    const withBundle = await requestsOf("project")
    expect(withBundle).toEqual(await requestsOf("none"))
  })
})
