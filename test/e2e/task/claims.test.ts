import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  bash,
  closeTaskProjects,
  endsOf,
  eventually,
  LEDGER_WAIT_MS,
  NEWEST,
  newestSessionID,
  newestWords,
  openSharedTask,
  openTaskProject,
  type Script,
  type SharedTask,
  TASK,
  type TaskProject,
} from "../../support/index.ts"
import { findRealProg, registerMissingRealProg } from "../../support/ledger/ledger-real.ts"
import { isTmuxHere, startTui } from "../../support/opencode/tui.ts"
import { createSession, handOver, lastTurn } from "../sessions.ts"

closeTaskProjects()

/** Runs the command or writes the file that the newest message names, and reports. */
const obedient: Script = (request) => {
  const words = newestWords(request)
  if (words.includes("[tool]")) return { text: "Noted." }
  if (words.includes("Hand this work over")) return { tool: "handoff_session", input: { prompt: "Go on.", files: [] } }
  const [, command] = /\bRUN: (.+)/.exec(words) ?? []
  if (command !== undefined) return bash(command)
  const [, file] = /\bWRITE: (.+)/.exec(words) ?? []
  return file === undefined ? { text: "Noted." } : { tool: "write", input: { filePath: file, content: "new\n" } }
}

/** Waits until `prog show` names this session as the holder, or with null that the task is free. */
const awaitClaim = ({ ledger, taskID }: Pick<TaskProject, "ledger" | "taskID">, session: string | null) =>
  eventually(
    `the claim of ${session}`,
    async () => {
      const shown = await ledger.prog("show", taskID)
      const [claimed] = /^Claimed: .*$/m.exec(shown) ?? []
      return (session === null ? claimed === undefined : claimed?.includes(`session ${session} `)) ? shown : undefined
    },
    ...LEDGER_WAIT_MS,
  )

/** The toasts that OpenCode is asked to show from now on. */
const collectToasts = async ({ client }: SharedTask): Promise<string[]> => {
  const { stream } = await client.event.subscribe()
  const toasts: string[] = []
  void (async () => {
    for await (const event of stream) {
      const { type, properties }: { type: string; properties: { title?: string; message?: string } } = Object(event)
      if (type === "tui.toast.show") toasts.push(`${properties.title}: ${properties.message}`)
    }
  })()
  return toasts
}

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(promised(["claim.B1", "claim.B2"], "the first tool claims, a second session is told"), async () => {
    const task = await openSharedTask(binary, obedient)
    const toasts = await collectToasts(task)
    const first = await task.say(task.message)
    expect(await task.ledger.prog("claims")).not.toContain(task.taskID)
    const child = await createSession(task, first)
    await task.say("RUN: true", child)
    expect(await awaitClaim(task, first), "a child works under its parent's claim").toMatch(/^Status: +in_progress$/m)
    await task.client.session.delete({ path: { id: child } })
    await task.say("RUN: true", first)
    await awaitClaim(task, first)
    const second = await task.say(`${task.message}\nWRITE: second.txt`)
    expect(lastTurn(task)).toContain("When this message came, the task was claimed by")
    expect(lastTurn(task)).toContain(`session ${first} on`)
    expect(existsSync(join(task.project.directory, "second.txt")), "claims are shared by default").toBe(true)
    await task.say("Go on.", second)
    await task.client.session.delete({ path: { id: first } })
    await awaitClaim(task, null)
    await task.say("RUN: true", second)
    await awaitClaim(task, second)
    expect(toasts).toEqual([expect.stringMatching(new RegExp(`^Task ${task.taskID} is claimed: By .*${first}`))])
    const to = await handOver(task, second)
    await awaitClaim(task, null)
    const next = await task.say("RUN: true", to)
    expect(lastTurn(task), "a handoff does not keep the next one off").not.toContain("When this message came")
    await awaitClaim(task, next)
    await task.restart()
    await awaitClaim(task, null)
  })

  test(promised("claim.B2", "an exclusive claim refuses another session's changes to files"), async () => {
    const task = await openSharedTask(binary, obedient)
    task.project.write(".opencode/baton.json", JSON.stringify({ claims: "exclusive" }))
    const written = (file: string): boolean => existsSync(join(task.project.directory, file))
    const first = await task.say(`${task.message}\nWRITE: first.txt`)
    expect(written("first.txt")).toBe(true)
    await awaitClaim(task, first)
    const second = await task.say(`${task.message}\nWRITE: second.txt`)
    expect(lastTurn(task)).toContain(`prog release ${task.taskID}`)
    expect(lastTurn(task)).toMatch(new RegExp(`is claimed by .*session ${first}.*so this session may not change`))
    expect(written("second.txt")).toBe(false)
    await task.say("RUN: echo by bash >bash.txt", second)
    expect(written("bash.txt"), "no other tool is refused").toBe(true)
    await task.ledger.prog("release", task.taskID)
    await task.say("WRITE: second.txt", second)
    expect(written("second.txt")).toBe(true)
    await awaitClaim(task, second)
    await task.say("WRITE: third.txt", first)
    expect(written("third.txt")).toBe(false)
  })

  test(promised("claim.B1", "with claims off nothing is claimed, and no task is started"), async () => {
    const task = await openSharedTask(binary, obedient)
    task.project.write(".opencode/baton.json", JSON.stringify({ claims: "off" }))
    const first = await task.say(`${task.message}\nRUN: true`)
    await task.say("RUN: true", first)
    expect(await task.ledger.prog("claims")).not.toContain(task.taskID)
    expect((await task.ledger.show(task.taskID)).status).toBe("open")
  })
})

describe.each(endsOf(0))("OpenCode $version", (binary) => {
  test(promised("claim.B1", "kill -9 frees the claim, and so does the end of a run"), async () => {
    const task = await openTaskProject(binary, obedient)
    const isClaimed = async () => ((await task.ledger.prog("claims")).includes("session") ? true : undefined)
    const killed = await task.run(`${task.message}\nRUN: sleep 600`, {
      onStart: (pid) =>
        void eventually("the claim", isClaimed, ...LEDGER_WAIT_MS).then(() => process.kill(pid, "SIGKILL")),
    })
    expect(killed.signal).toBe("SIGKILL")
    const dead = newestSessionID(task)
    expect(await task.ledger.prog("claims")).toBe("No claims")
    const next = await task.run(`${task.message}\nRUN: prog show ${task.taskID}`)
    expect(next.exitCode, next.stderr).toBe(0)
    expect(lastTurn(task)).not.toContain("When this message came")
    expect(newestSessionID(task)).not.toBe(dead)
    expect(await task.ledger.prog("claims")).toBe("No claims")
  })
})

// scripts/test warns that this is left out.
describe.skipIf(!isTmuxHere())("OpenCode in a terminal", () => {
  test(promised(["claim.B2", "start.A3", "task.C1"], "toasts tell of a holder and an unknown task"), async () => {
    const task = await openTaskProject(NEWEST, obedient)
    await task.ledger.prog("claim", task.taskID, "--as", "ada")
    const tui = await startTui(NEWEST, task.project)
    try {
      await tui.send(`Please work on ${task.taskID}.`)
      await tui.shows(`Task ${task.taskID} is claimed`)
      await tui.shows("Noted.")
      for (const part of ["claimed by ada (on ", TASK.specification]) expect(lastTurn(task)).toContain(part)
      await task.ledger.prog("release", task.taskID)
      await tui.send("RUN: echo it is done")
      await eventually("the claim", async () => (await task.ledger.prog("claims")).includes("session") || undefined)
      await tui.send("Task: ts-0000ab")
      await tui.shows("No task ts-0000ab")
      const isTold = () => lastTurn(task).includes(`${task.taskID} (${TASK.title}, `) || undefined
      await eventually("a request with the nearest tasks", isTold)
    } finally {
      await tui.stop()
    }
    await eventually("its end", async () => (await task.ledger.prog("claims")) === "No claims" || undefined)
  })
})

const real = findRealProg()

if (real.kind === "missing") registerMissingRealProg("claims beside the real prog", real.reason)
else
  describe.each(endsOf(1))("OpenCode $version", (binary) => {
    test(promised(["claim.B1", "claim.B2"], "where the real prog is used, claims lie in its database"), async () => {
      const task = await openTaskProject(binary, obedient)
      const path = `${dirname(real.program.command)}:${task.project.environment.PATH ?? process.env.PATH}`
      const environment = { PATH: path, BATON_LEDGER: "real" }
      await task.ledger.prog("claim", task.taskID, "--as", "ada")
      const result = await task.run(`${task.message}\nRUN: prog claims; prog --version`, { environment })
      expect(result.exitCode, result.stderr).toBe(0)
      expect(lastTurn(task)).toContain("When this message came, the task was claimed by ada (on ")
      expect(lastTurn(task)).toMatch(/\[tool\][\s\S]*ada \(on /)
      expect(lastTurn(task)).not.toContain("Baton's embedded ledger")
      expect((await task.ledger.show(task.taskID)).status).toBe("in_progress")
    })
  })
