import { existsSync, readdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { lockLedger, unlockLedger } from "../../support/faults/fault-claim-table.ts"
import {
  ALL_LINES,
  bash,
  eventually,
  killOpenCode,
  LEDGER_WAIT_MS,
  linesOf,
  newestOrder,
  offers,
  openSharedTask,
  openTaskProject,
  type Script,
  type SharedTask,
  TASK,
  type TaskProject,
  testsOnce,
} from "../../support/index.ts"
import { findRealProg, registerMissingRealProg } from "../../support/ledger/ledger-real.ts"
import { handedOverTo } from "../../support/model/handoff-script.ts"
import { openServer, speak } from "../../support/opencode/model-project.ts"
import { collectToasts, createSession, lastTurn, runWell } from "../sessions.ts"

/** Runs the commands and writes the files that the newest message names, one after the other, and reports. */
const obedient: Script = (request) => {
  const words = newestOrder(request)
  const done = words.split("[tool]").length - 1
  if (done === 0 && words.includes("Hand this work over"))
    return { tool: "handoff_session", input: { prompt: "Go on.", files: [] } }
  const [orders = ""] = /(?:\b(?:RUN|WRITE): .+\n?)+/.exec(words) ?? []
  const [, order, object = ""] = [...orders.matchAll(/(RUN|WRITE): (.+)/g)][done] ?? []
  if (order === undefined) return { text: "Noted." }
  return order === "RUN" ? bash(object) : { tool: "write", input: { filePath: object, content: "new\n" } }
}

/** @returns the output of `prog show`, if it names this session as the holder, or with null says that the task is free */
const showsClaim = async (
  { ledger, taskID }: Pick<TaskProject, "ledger" | "taskID">,
  session: string | null,
): Promise<string | undefined> => {
  const shown = await ledger.prog("show", taskID)
  const [claimed] = /^Claimed: .*$/m.exec(shown) ?? []
  return (session === null ? claimed === undefined : claimed?.includes(`session ${session} `)) ? shown : undefined
}

const awaitClaim = (task: Pick<TaskProject, "ledger" | "taskID">, session: string | null) =>
  eventually(`the claim of ${session}`, () => showsClaim(task, session), ...LEDGER_WAIT_MS)

/** A claim that takes longer than a tool waits is asked for again with the next message. */
const speakUntilClaimed = (task: SharedTask, session: string) => {
  const speak = async () => {
    await task.say("RUN: true", session)
    return showsClaim(task, session)
  }
  return eventually(`the claim of ${session}`, speak, ...LEDGER_WAIT_MS)
}

/** A session in the middle of a turn. @returns a function that aborts the turn */
const work = (task: SharedTask, id: string): (() => Promise<void>) => {
  const turn = task.say("RUN: sleep 600", id).catch(() => {})
  return async () => {
    await task.client.session.abort({ path: { id } })
    await turn
  }
}

describe.each(ALL_LINES)("OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  test(
    promised(["claim.B1", "claim.B2"], "a session's first tool claims the task, others are told, its end frees it"),
    async () => {
      const task = await openSharedTask(binary, obedient)
      const hasNotices = offers(binary, "notices")
      const toasts = hasNotices ? await collectToasts(task) : []
      const first = await task.say(task.message)
      expect(await task.ledger.prog("claims")).not.toContain(task.taskID)
      const stop = work(task, first)
      expect(await awaitClaim(task, first)).toMatch(/^Status: +in_progress$/m)
      const second = await task.say(`${task.message}\nWRITE: second.txt`)
      expect(lastTurn(task)).toContain(
        `When this message came, the task was claimed by "your other session ${first} since`,
      )
      expect(existsSync(join(task.project.directory, "second.txt")), "claims are shared by default").toBe(true)
      await task.say("Go on.", second)
      await stop()
      await task.client.session.delete({ path: { id: first } })
      await awaitClaim(task, null)
      await task.say("RUN: true", second)
      await awaitClaim(task, second)
      if (hasNotices) await eventually("both toasts", () => toasts.length >= 2 || undefined)
      const claimed = new RegExp(
        `^Baton: task ${task.taskID} is claimed: By your other session ${first} since 20[-0-9]+ [0-9:]+\\.$`,
      )
      const expected = [`Baton: task ${task.taskID}: ${TASK.title} · open`, expect.stringMatching(claimed)]
      expect(toasts).toEqual(hasNotices ? expected : [])
      await task.restart()
      // It tells its plugins only when the folder is opened again.
      if (binary.version === "1.3.2") await createSession(task)
      await awaitClaim(task, null)
    },
  )

  once(
    promised(["claim.B2", "queue.A6"], "an exclusive claim of a session at work refuses another's changes"),
    async () => {
      const task = await openSharedTask(binary, obedient)
      task.project.write(".opencode/baton.json", JSON.stringify({ claims: "exclusive" }))
      const written = (file: string): boolean => existsSync(join(task.project.directory, file))
      const first = await task.say(`${task.message}\nWRITE: first.txt`)
      expect(written("first.txt")).toBe(true)
      const stop = work(task, first)
      await awaitClaim(task, first)
      const second = await task.say(`${task.message}\nRUN: true`)
      // A claim that takes longer than a tool may wait refuses nothing.
      await task.logged("another has claimed the task")
      await task.say("WRITE: second.txt", second)
      expect(lastTurn(task)).toContain(`prog release ${task.taskID}`)
      expect(lastTurn(task)).toMatch(
        new RegExp(`is claimed by \\\\?"your other session ${first} since .*so this session may not change`),
      )
      expect(written("second.txt")).toBe(false)
      await task.say("RUN: echo by bash >bash.txt", second)
      expect(written("bash.txt"), "no other tool is refused").toBe(true)
      await task.ledger.prog("release", task.taskID)
      await task.say("WRITE: second.txt", second)
      expect(written("second.txt")).toBe(true)
      await awaitClaim(task, second)
      await stop()
      await speakUntilClaimed(task, first)
      await task.say("WRITE: third.txt", first)
      expect(written("third.txt"), "the second is idle").toBe(true)
    },
  )

  once(promised("claim.B1", "a task that is opened again is free, also for its session"), async () => {
    const task = await openSharedTask(binary, obedient)
    task.project.write(".opencode/baton.json", JSON.stringify({ claims: "exclusive" }))
    const first = await task.say(`${task.message}\nRUN: true`)
    await awaitClaim(task, first)
    await task.say(`RUN: prog done ${task.taskID}`, first)
    await task.say(`RUN: prog open ${task.taskID}\nWRITE: more.txt`, first)
    expect(existsSync(join(task.project.directory, "more.txt"))).toBe(true)
    expect(await speakUntilClaimed(task, first)).toMatch(/^Status: +in_progress$/m)
    await task.say(`RUN: prog done ${task.taskID}`, first)
    await task.ledger.prog("open", task.taskID)
    await awaitClaim(task, null)
    const second = await task.say(`${task.message}\nRUN: true`)
    expect(lastTurn(task)).not.toContain("When this message came")
    await awaitClaim(task, second)
  })

  once(promised("claim.B1", "a child session works under its parent's claim"), async () => {
    const task = await openSharedTask(binary, obedient)
    const parent = await task.say(task.message)
    const child = (await task.client.session.create({ body: { parentID: parent } })).data?.id ?? ""
    await task.say("RUN: true", child)
    await awaitClaim(task, parent)
    await task.client.session.delete({ path: { id: child } })
    await task.say("RUN: true", parent)
    await awaitClaim(task, parent)
  })

  once(promised("claim.B2", "a session that hands its task over does not keep the next one from it"), async () => {
    const task = await openSharedTask(binary, obedient)
    const from = await task.say(`${task.message}\nRUN: true`)
    await awaitClaim(task, from)
    await task.client.session.command({ path: { id: from }, body: { command: "handoff", arguments: "" } })
    await awaitClaim(task, null)
    const next = await task.say("RUN: true", handedOverTo(task))
    expect(lastTurn(task)).not.toContain("When this message came")
    await awaitClaim(task, next)
  })

  once(promised("claim.B1", "with claims off nothing is claimed, and no task is started"), async () => {
    const task = await openSharedTask(binary, obedient)
    task.project.write(".opencode/baton.json", JSON.stringify({ claims: "off" }))
    const first = await task.say(`${task.message}\nRUN: true`)
    await task.say("RUN: true", first)
    expect(await task.ledger.prog("claims")).not.toContain(task.taskID)
    expect((await task.ledger.show(task.taskID)).status).toBe("open")
  })
})

describe.each(linesOf(0))("OpenCode $version", (binary) => {
  test(promised("claim.B2", "a ledger that is locked frees no exclusive claim at the user's message"), async () => {
    const task = await openTaskProject(binary, obedient)
    task.project.write(".opencode/baton.json", JSON.stringify({ claims: "exclusive" }))
    await task.ledger.prog("claim", task.taskID, "--as", "ada")
    await using server = await openServer(task)
    const session = await createSession(server)
    const write = (before = "") => speak(server, session, `${before}\nWRITE: changed.txt`)
    const isWritten = () => existsSync(join(task.project.directory, "changed.txt"))
    await write(task.message)
    expect(lastTurn(task)).toMatch(/is claimed by \\?"ada \(on .*so this session may not change/)
    await lockLedger(task)
    await write()
    expect(lastTurn(task).split("so this session may not change"), "refused twice").toHaveLength(3)
    expect(isWritten()).toBe(false)
    await unlockLedger(task)
    await task.ledger.prog("release", task.taskID)
    await write()
    expect(isWritten()).toBe(true)
  })

  test(promised("claim.B1", "kill -9 frees the claim, and so does the end of a run"), async () => {
    const task = await openTaskProject(binary, obedient)
    const isClaimed = async () => (await task.ledger.prog("claims")).includes("session") || undefined
    let pid = 0
    const onStart = (started: number) => {
      pid = started
    }
    const running = task.run(`${task.message}\nRUN: sleep 600`, { onStart })
    try {
      await eventually("the claim", isClaimed, ...LEDGER_WAIT_MS)
    } finally {
      await killOpenCode(pid)
    }
    expect((await running).signal).toBe("SIGKILL")
    // OpenCode's log of a killed process may lack its end, the session with it.
    const bound = () => readdirSync(join(task.project.directory, ".opencode/state/tasks")).length
    expect(bound()).toBe(1)
    expect(await task.ledger.prog("claims")).toBe("No claims")
    await runWell(task, `${task.message}\nRUN: prog show ${task.taskID}`)
    expect(lastTurn(task)).not.toContain("When this message came")
    expect(bound(), "the second is a session of its own").toBe(2)
    expect(await task.ledger.prog("claims")).toBe("No claims")
  })
})

const real = findRealProg()

if (real.kind === "missing") registerMissingRealProg("claims beside the real prog", real.reason)
else
  describe.each(linesOf(1))("OpenCode $version", (binary) => {
    test(promised(["claim.B1", "claim.B2"], "where the real prog is used, claims lie in its database"), async () => {
      const task = await openTaskProject(binary, obedient)
      const path = `${dirname(real.program.command)}:${task.project.environment.PATH ?? process.env.PATH}`
      const environment = { PATH: path, BATON_LEDGER: "real" }
      await task.ledger.prog("claim", task.taskID, "--as", "ada")
      await runWell(task, `${task.message}\nRUN: prog claims; prog --version`, { environment })
      expect(lastTurn(task)).toContain('When this message came, the task was claimed by "ada (on ')
      expect(lastTurn(task)).toMatch(/\[tool\][\s\S]*ada \(on /)
      expect(lastTurn(task)).not.toContain("Baton's embedded ledger")
      expect((await task.ledger.show(task.taskID)).status).toBe("in_progress")
    })
  })
