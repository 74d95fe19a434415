import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  BRIEF,
  closeTaskProjects,
  eventually,
  openSharedTask,
  openTaskProject,
} from "../../support/index.ts"
import { comparableRequests } from "../../support/model/request-size.ts"
import { compact, compactionsOf, compactsOnDemand, forkSession, lastTurn, recordsOf, runWell } from "../sessions.ts"

closeTaskProjects()

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(promised("task.B2", "a session whose first request was refused knows its task in a new process"), async () => {
    let refuses = true
    const task = await openTaskProject(binary, (request) =>
      refuses && request.kind === "turn" ? { status: 401, message: "the key is not valid" } : compactsOnDemand(request),
    )
    await task.run(task.message)
    refuses = false
    // 1.2.15 may end before its log names the session.
    await runWell(task, "COMPACT-NOW", { args: ["--continue"] })
    expect(lastTurn(task)).toContain(`Task: ${task.taskID}`)
    expect(lastTurn(task)).toContain(BRIEF)
    expect(task.project.batonLog().join("\n")).toContain("task known from an earlier run")
  })

  test(promised("task.B3", "a later Task line re-binds the session, and the log says so"), async () => {
    const task = await openSharedTask(binary, compactsOnDemand)
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

  test(
    promised(["task.B2", "compaction.C7"], "a fork that is compacted at once knows its task, and records what is new"),
    async () => {
      const task = await openSharedTask(binary, compactsOnDemand)
      const id = await task.say(task.message)
      await compact(task, await forkSession(task, id))
      expect(compactionsOf(task).at(-1)).toContain(`- Task: ${task.taskID}`)
      expect(compactionsOf(task).at(-1)).toContain(BRIEF)
      expect(await task.records(1)).toHaveLength(1)

      await task.say("COMPACT-NOW", id)
      expect(await task.records(2)).toHaveLength(2)
      await task.say("Go on.", await forkSession(task, id))
      for (const part of ["was compacted before this session was forked", `- Task: ${task.taskID}`, BRIEF])
        expect(lastTurn(task)).toContain(part)
      expect(await recordsOf(task)).toHaveLength(2)
      expect((await task.ledger.show(task.taskID)).description).toContain(`(session ${id}, `)
    },
  )

  test(promised("task.B3", "a deleted session leaves no state behind"), async () => {
    const task = await openSharedTask(binary, compactsOnDemand)
    const tasksFolder = join(task.project.directory, ".opencode", "state", "tasks")
    const id = await task.say(task.message)
    expect(readdirSync(tasksFolder)).toEqual([`${id}.json`])
    await task.client.session.delete({ path: { id } })
    await eventually("forgetting", () => (readdirSync(tasksFolder).length === 0 ? true : undefined))
  })

  test(promised("task.B4", "without a task the model receives what it receives without the bundle"), async () => {
    const requestsOf = async (bundle: "none" | "project"): Promise<unknown> => {
      const task = await openSharedTask(binary, compactsOnDemand, { bundle })
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
