import { existsSync, readdirSync, renameSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { BOTH_ENDS } from "../support/opencode-binary.ts"
import { eventually, startServer } from "../support/opencode-server.ts"
import { comparableRequests } from "../support/request-size.ts"
import { COMPACTING_PROMPT_TOKENS } from "../support/retention.ts"
import type { ModelReply, ModelRequest, Script } from "../support/scripted-model.ts"
import { BRIEF, closeTaskProjects, newestSessionID, openTaskProject } from "../support/task-project.ts"

closeTaskProjects()

const compacting: ModelReply = {
  tool: "bash",
  input: { command: "true", description: "A step" },
  promptTokens: COMPACTING_PROMPT_TOKENS,
}

/** Compacts when a message asks for it with COMPACT-NOW, and reports otherwise. */
const onDemand: Script = ({ kind, conversation }) => {
  if (kind === "compaction") return { text: "A summary." }
  const last = conversation.slice(conversation.lastIndexOf("[user]"))
  return last.includes("COMPACT-NOW") && !last.includes("[tool]") ? compacting : { text: "Noted." }
}

const lastTurn = (requests: readonly ModelRequest[]): string => requests.at(-1)?.conversation ?? ""

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(promised("task.B2", "a session resumed in a new process knows its task at once"), async () => {
    const task = await openTaskProject(binary, onDemand)
    await task.run(task.message)
    const resumed = await task.run("COMPACT-NOW", { args: ["--session", newestSessionID(task)] })
    expect(resumed.exitCode, resumed.stderr).toBe(0)
    expect(lastTurn(task.model.received("turn"))).toContain(`Task: ${task.taskID}`)
    expect(lastTurn(task.model.received("turn"))).toContain(BRIEF)
    expect(task.project.batonLog().join("\n")).toContain("task known from an earlier run")
  })

  test(promised("task.B2", "a session from before the bundle was installed is found by its history"), async () => {
    const task = await openTaskProject(binary, onDemand)
    const { project } = task
    const without = join(project.home, "no-bundle")
    renameSync(join(project.directory, ".opencode", "plugins"), without)
    await task.run(task.message)
    expect(project.batonLog()).toEqual([])
    renameSync(without, join(project.directory, ".opencode", "plugins"))
    const resumed = await task.run("COMPACT-NOW", { args: ["--session", newestSessionID(task)] })
    expect(resumed.exitCode, resumed.stderr).toBe(0)
    expect(lastTurn(task.model.received("turn"))).toContain(`Task: ${task.taskID}`)
    expect(project.batonLog().join("\n")).toMatch(/origin=history/)
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
    expect(lastTurn(task.model.received("turn"))).toContain(`Task: ${task.taskID}`)
    expect(lastTurn(task.model.received("turn"))).toContain(BRIEF)
  })

  test(promised("task.B3", "a later Task line re-binds the session, and the log says so"), async () => {
    const task = await openTaskProject(binary, onDemand)
    const other = await task.ledger.prog("add", "Another task", "-p", "demo")
    await task.run(task.message)
    const resumed = await task.run(`Task: ${other}\nCOMPACT-NOW`, { args: ["--session", newestSessionID(task)] })
    expect(resumed.exitCode, resumed.stderr).toBe(0)
    expect(lastTurn(task.model.received("turn"))).toContain(`Task: ${other}`)
    expect(lastTurn(task.model.received("turn"))).not.toContain(`- Task: ${task.taskID}`)
    expect(task.project.batonLog().join("\n")).toContain("session changed its task")
    expect((await task.ledger.show(task.taskID)).logs).toEqual([])
  })

  test(promised("task.B2", "a fork of a session works on the same task"), async () => {
    const task = await openTaskProject(binary, onDemand)
    const server = await startServer(binary, task.project)
    const model = { providerID: "scripted", modelID: "model" }
    const prompt = (id: string, text: string) =>
      server.client.session.prompt({ path: { id }, body: { model, parts: [{ type: "text", text }] } })
    try {
      const id = (await server.client.session.create({ body: {} })).data?.id ?? ""
      await prompt(id, task.message)
      const fork = (await server.client.session.fork({ path: { id }, body: {} })).data?.id ?? ""
      expect(fork).not.toBe(id)
      await prompt(fork, "COMPACT-NOW")
      expect(lastTurn(task.model.received("turn"))).toContain(`Task: ${task.taskID}`)
      expect(lastTurn(task.model.received("turn"))).toContain(BRIEF)
    } finally {
      await server.stop()
    }
  })

  test(
    promised(["task.B2", "compaction.C7"], "a fork that is compacted at once knows its task, and records what is new"),
    async () => {
      const task = await openTaskProject(binary, onDemand)
      const server = await startServer(binary, task.project)
      const { client } = server
      const model = { providerID: "scripted", modelID: "model" }
      const prompt = (id: string, text: string) =>
        client.session.prompt({ path: { id }, body: { model, parts: [{ type: "text", text }] } })
      const compactions = async (count: number) =>
        eventually(`record ${count}`, async () => {
          const { logs } = await task.ledger.show(task.taskID)
          return logs.length >= count ? logs : undefined
        })
      try {
        const id = (await client.session.create({ body: {} })).data?.id ?? ""
        await prompt(id, task.message)
        const plain = (await client.session.fork({ path: { id }, body: {} })).data?.id ?? ""
        await client.session.summarize({ path: { id: plain }, body: model })
        expect(task.model.received("compaction").at(-1)?.conversation).toContain(`- Task: ${task.taskID}`)
        expect(await compactions(1)).toHaveLength(1)

        await prompt(id, "COMPACT-NOW")
        expect(await compactions(2)).toHaveLength(2)
        const compacted = (await client.session.fork({ path: { id }, body: {} })).data?.id ?? ""
        await prompt(compacted, "Go on.")
        expect(lastTurn(task.model.received("turn"))).toContain("was compacted before this session was forked")
        expect(lastTurn(task.model.received("turn"))).toContain(`- Task: ${task.taskID}`)
        const { description, logs } = await task.ledger.show(task.taskID)
        expect(logs).toHaveLength(2)
        expect(description).toContain(`(session ${id}, `)
      } finally {
        await server.stop()
      }
    },
  )

  test(promised("task.B3", "a deleted session leaves no state behind"), async () => {
    const task = await openTaskProject(binary, onDemand)
    const tasksFolder = join(task.project.directory, ".opencode", "state", "tasks")
    const server = await startServer(binary, task.project)
    try {
      const id = (await server.client.session.create({ body: {} })).data?.id ?? ""
      const model = { providerID: "scripted", modelID: "model" }
      await server.client.session.prompt({
        path: { id },
        body: { model, parts: [{ type: "text", text: task.message }] },
      })
      expect(readdirSync(tasksFolder)).toEqual([`${id}.json`])
      await server.client.session.delete({ path: { id } })
      await eventually("forgetting", () => (readdirSync(tasksFolder).length === 0 ? true : undefined))
    } finally {
      await server.stop()
    }
  })

  test(promised("task.B4", "without a task the model receives what it receives without the bundle"), async () => {
    const requestsOf = async (bundle: "none" | "project"): Promise<unknown> => {
      const task = await openTaskProject(binary, onDemand, { bundle })
      const result = await task.run("COMPACT-NOW please, there is no task here: Task: re-added tests")
      expect(result.exitCode, result.stderr).toBe(0)
      const state = join(task.project.directory, ".opencode", "state")
      // The live state tells of every session; of a task there is nothing to keep.
      const kept = existsSync(state) ? readdirSync(state).filter((name) => !["live", ".gitignore"].includes(name)) : []
      expect(kept).toEqual([])
      return comparableRequests(task.model, task.project)
    }
    const withBundle = await requestsOf("project")
    expect(withBundle).toEqual(await requestsOf("none"))
  })
})
