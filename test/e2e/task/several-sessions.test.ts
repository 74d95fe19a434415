import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { isAlive } from "../../../.opencode/baton/host/process-identity.ts"
import { promised } from "../../requirements.ts"
import {
  bash,
  eventually,
  killOpenCode,
  LEDGER_WAIT_MS,
  linesOf,
  MODEL,
  newestWords,
  openSharedTask,
  openTaskProject,
  type Script,
  type SharedTask,
  startServer,
  type TaskProject,
} from "../../support/index.ts"
import { afterDelivery, compact, compactionsOf, expectInOrder, lastTurn, runWell } from "../sessions.ts"

const awaitHandoff = ({ ledger, taskID }: Pick<TaskProject, "ledger" | "taskID">, number: number) => {
  const isThere = async () => (await ledger.show(taskID)).description.includes(`Summary ${number}.`) || undefined
  return eventually(`handoff ${number}`, isThere, ...LEDGER_WAIT_MS)
}

const ROUNDS = [1, 2, 3, 4]

describe.each(linesOf(1))("OpenCode $version", (binary) => {
  test(promised("sessions.A2", "two sessions on one task keep a handoff each and see the other's"), async () => {
    const task: SharedTask = await openSharedTask(binary, ({ kind, index }) => ({
      text: kind === "compaction" ? `Summary ${index + 1}.` : "Noted.",
    }))
    const { description } = await task.ledger.show(task.taskID)
    const sessions = [await task.say(task.message), await task.say(task.message)]
    for (const number of ROUNDS) {
      const id = sessions[(number - 1) % 2] ?? ""
      await compact(task, id)
      await task.say("Go on.", id)
      await awaitHandoff(task, number)
    }
    const shown = await task.ledger.show(task.taskID)
    const messages = shown.logs.map(({ message }) => message)
    expect(messages).toEqual(
      ROUNDS.map((at) => `Compaction ${Math.ceil(at / 2)}: Summary ${at}. (session ${sessions[(at - 1) % 2]})`),
    )
    const titles = [...shown.description.matchAll(/^# Handoff after compaction (\d) \(session (\w+)/gm)]
    expect(titles.map(([, number, id]) => `${number} ${id}`)).toEqual([`2 ${sessions[1]}`, `2 ${sessions[0]}`])
    for (const number of [3, 4]) expect(shown.description).toContain(`Summary ${number}.`)
    expect(shown.description.slice(0, description.length + 6)).toBe(`${description}\n\n<!--`)
    for (const [at, conversation] of compactionsOf(task).entries()) {
      const others = `Handoff of an earlier session on this task \\(session ${sessions[(at + 1) % 2]}[^]*Summary ${at}\\.`
      if (at > 0) expect(conversation).toMatch(new RegExp(others))
      if (at > 1) expect(conversation, "its own").toContain(`Summary ${at - 1}.`)
    }
  })

  test(
    promised(["sessions.A1", "task.B3"], "work on a task that a session comes back to is in its handoff"),
    async () => {
      const task: SharedTask = await openSharedTask(binary, (request) => {
        if (request.kind === "compaction") return { text: `Summary ${request.index + 1}.` }
        const words = newestWords(request)
        return words.includes("WORK") && !words.includes("[tool]")
          ? { tool: "write", input: { filePath: "src/lexer.ts", content: "export {}\n" } }
          : { text: "Noted." }
      })
      const other = await task.ledger.prog("add", "Another task", "-p", "demo")
      const id = await task.say(task.message)
      await compact(task, id)
      await awaitHandoff(task, 1)
      await task.say(`Task: ${other}`, id)
      await compact(task, id)
      await awaitHandoff({ ...task, taskID: other }, 2)
      await task.say(`${task.message}\nWORK`, id)
      const description = async () => (await task.ledger.show(task.taskID)).description
      const isThere = async () => (await description()).includes("src/lexer.ts ×1") || undefined
      await eventually("the work", isThere, ...LEDGER_WAIT_MS)
      expectInOrder(await description(), ["# Handoff after compaction 1 ", "Summary 1.", "src/lexer.ts ×1"])
      expect(await description()).not.toContain("Work in progress")
    },
  )
})

const stateFiles = ({ project }: TaskProject): string[] => {
  const folder = join(project.directory, ".opencode/state/working")
  return existsSync(folder) ? readdirSync(folder) : []
}

/** Changes a file and runs a failing command; waits for ever when it is told to. */
const work = (task: () => TaskProject): Script =>
  afterDelivery(task, (request) => {
    const words = newestWords(request)
    const results = words.split("[tool]").length - 1
    // The note beside the message quotes what the user asked the session before.
    const [said = ""] = words.split("[Baton]")
    if (!said.includes("WORK")) return { text: "Noted." }
    if (results === 0) return { tool: "write", input: { filePath: "src/lexer.ts", content: "export {}\n" } }
    if (results === 1) return bash("ls /no/such/folder")
    return said.includes("HANG") ? bash("sleep 600") : { text: "Done." }
  })

describe.each(linesOf(0))("OpenCode $version", (binary) => {
  test(promised("sessions.A1", "a session that ends uncompacted leaves what it changed and what failed"), async () => {
    const script = work(() => task)
    const task: TaskProject = await openTaskProject(binary, script)
    await task.run(`${task.message}\nWORK`)
    const left = stateFiles(task)
    await task.run(task.message)
    const turn = lastTurn(task)
    // The second run may leave one of its own: 1.2.15 ends too early for its record.
    for (const file of left) expect(stateFiles(task)).not.toContain(file)
    const { description, logs } = await task.ledger.show(task.taskID)
    expect(description).toMatch(/# Work in progress \(session ses_/)
    expect(description).toContain("src/lexer.ts ×1")
    expect(description).toContain("Failed when last run: `ls /no/such/folder`")
    expect(logs).toEqual([])
    expect(turn).toContain("src/lexer.ts ×1")
    expect(turn).not.toContain("ended in the middle of")
  })
})

/** Begins the work that hangs. @returns the process that does it */
type Begin = (task: TaskProject) => Promise<number>

const inRun: Begin = (task) =>
  new Promise((resolve, reject) => {
    task.run(`${task.message}\nWORK HANG`, { onStart: resolve }).catch(reject)
  })

const inServe: Begin = async ({ binary, project, message }) => {
  const { client, pid } = await startServer(binary, project)
  const id = (await client.session.create({ body: {} })).data?.id ?? ""
  const body = { model: MODEL, parts: [{ type: "text" as const, text: `${message}\nWORK HANG` }] }
  // It is killed before it answers.
  client.session.prompt({ path: { id }, body }).catch(() => undefined)
  return pid
}

/** The state with which the session's next process begins. */
const hasStored = (task: TaskProject, part: string): boolean => {
  const folder = join(task.project.directory, ".opencode/state/compactions")
  const names = existsSync(folder) ? readdirSync(folder) : []
  return names.some((name) => readFileSync(join(folder, name), "utf8").includes(part))
}

const KILLED = [
  ...linesOf(0).map((binary) => ({ ...binary, place: "run", begin: inRun })),
  ...linesOf(1).map((binary) => ({ ...binary, place: "serve", begin: inServe })),
]

describe.each(KILLED)("OpenCode $version in $place", ({ begin, ...binary }) => {
  test(promised("sessions.A1", "after a kill -9 the next session is told what changed and what failed"), async () => {
    const script = work(() => task)
    const task: TaskProject = await openTaskProject(binary, script)
    const pid = await begin(task)
    const isHanging = () => lastTurn(task).split("[tool]").length === 3 && stateFiles(task).length === 1
    const hangs = () => (isHanging() && hasStored(task, "ls /no/such/folder")) || undefined
    try {
      await eventually("the command that hangs, and what is known", hangs)
    } finally {
      await killOpenCode(pid)
    }
    await eventually("its end", () => (isAlive(pid) ? undefined : true))
    const left = stateFiles(task)
    expect(left).toHaveLength(1)
    await runWell(task, task.message)
    const turn = lastTurn(task)
    expect(turn).toContain("ended in the middle of")
    expect(turn).toContain("src/lexer.ts ×1")
    expect(turn).toContain("Failed when last run: `ls /no/such/folder`")
    for (const file of left) expect(stateFiles(task)).not.toContain(file)
    const { description, logs } = await task.ledger.show(task.taskID)
    expect(description).toContain("src/lexer.ts ×1")
    expect(logs.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^Session ses_\w+ ended in the middle of the turn of 2/),
    ])
  })
})
