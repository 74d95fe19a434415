import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { beforeEach, describe, expect, test, vi } from "vitest"
import type { Sessions } from "../../../.opencode/baton/host/sessions.ts"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { createApprovals } from "../../../.opencode/baton/live-state/c2c/approvals.ts"
import { readC2c } from "../../../.opencode/baton/live-state/c2c/identity.ts"
import { createInbox, parseInbox } from "../../../.opencode/baton/live-state/c2c/inbox.ts"
import { openC2cSession } from "../../../.opencode/baton/live-state/c2c/session.ts"
import { readEvent } from "../../../.opencode/baton/live-state/events.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { createC2c } from "../../support/opencode/c2c-stand-in.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

describe("c2c", () => {
  const setUp = () => {
    const folder = temporaryFolder()
    const [home, project] = [join(folder, "home"), join(folder, "project")]
    const { environment, program } = createC2c(join(folder, "bin"))
    const read = (change: Record<string, string | undefined> = {}) =>
      readC2c({ environment: { ...environment, HOME: home, ...change }, folders: [project] })
    return { home, project, program, read }
  }

  test(promised("live-state.E1", "is there where its session's id is set and its program is found"), async () => {
    const { program, read } = setUp()
    expect(await read()).toEqual({ kind: "session", program, sessionID: "oc-1", supervisors: [] })
    expect(await read({ C2C_CLI_COMMAND: "/x/c2c" })).toMatchObject({ program: "/x/c2c" })
    for (const without of ["C2C_MCP_SESSION_ID", "PATH"])
      expect(await read({ [without]: undefined })).toEqual({ kind: "none" })
    const several = { C2C_SUPERVISORS: " ada, bob ,," }
    expect(await read(several)).toMatchObject({ supervisors: ["ada", "bob"] })
    expect(await read({ ...several, C2C_PERMISSION_SUPERVISOR: "eve" })).toMatchObject({ supervisors: ["eve"] })
  })

  const PLUGINS = ["project/.opencode/plugins/c2c.ts", "home/.config/opencode/plugins/c2c.ts"]
  test.each(PLUGINS)(promised("live-state.E3", "is left to its own plugin where that is %s"), async (file) => {
    const { home, read } = setUp()
    const path = join(dirname(home), file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, "")
    expect(await read()).toEqual({ kind: "own-plugin", path })
  })
})

const message = (content: string, from_alias = "ada") => ({ from_alias, to_alias: "oc-1", content })

test.each([
  ["", []],
  ['{"session_id":"x","messages":[]}', []],
  [JSON.stringify({ messages: [message("Hi"), { from_alias: 7 }] }), [message("Hi")]],
  [JSON.stringify([message("Hi")]), [message("Hi")]],
  ['"text"', []],
])(promised("live-state.E1", "the inbox %j is read"), (json, messages) => expect(parseInbox(json)).toEqual(messages))

describe("the inbox", () => {
  const setUp = (project = temporaryFolder()) => {
    const log = createRecordedLog()
    const stored: string[] = []
    const opencode = { isIdle: true, takes: true, answers: true, time: 1_000_000 }
    const sessions: Pick<Sessions, "messages" | "start"> = {
      messages: async () => {
        if (!opencode.answers) return { kind: "failed", reason: "busy" }
        const info = { role: "user", time: { created: opencode.time }, agent: "a", model: {} }
        const messages = stored.map((text) => ({ info, parts: [{ type: "text", text }] }))
        return { kind: "ok", value: { messages: messages as never } }
      },
      start: async (_sessionID, text) => {
        if (!opencode.takes) return { kind: "failed", reason: "refused" }
        stored.push(text)
        return { kind: "ok", value: undefined }
      },
    }
    const create = () =>
      createInbox({
        c2cSession: "oc-1",
        state: createStateFolder(project),
        sessions,
        root: () => ({ sessionID: "ses_1", isIdle: opencode.isIdle }),
        log,
        now: () => opencode.time,
      })
    const path = join(project, ".opencode/state/c2c/oc-1.json")
    const spooled = () => JSON.parse(readFileSync(path, "utf8")).map(({ content }: { content: string }) => content)
    const said = () => stored.map((text) => text.split("\n")[1])
    return { opencode, create, inbox: create(), path, spooled, said, stored, log }
  }

  test(promised("live-state.E1", "gives the root one message a turn, in order, in c2c's own words"), async () => {
    const { inbox, opencode, path, spooled, said, stored } = setUp()
    await inbox.receive([message("one"), message("two")])
    expect([said(), spooled()]).toEqual([["one"], ["one", "two"]])
    expect(stored[0]).toBe(
      '<c2c event="message" from="ada" alias="oc-1" source="broker" action_after="continue">\none\n</c2c>',
    )
    expect(statSync(path).mode & 0o777).toBe(0o600)
    opencode.isIdle = false
    await inbox.receive([])
    expect([said(), spooled()]).toEqual([["one"], ["two"]])
    opencode.isIdle = true
    await inbox.receive([])
    await inbox.receive([])
    expect([said(), spooled()]).toEqual([["one", "two"], []])
  })

  test(promised("live-state.E1", "keeps what OpenCode refuses, and sends nothing twice that it may have"), async () => {
    const { inbox, opencode, spooled, said, create } = setUp()
    opencode.takes = false
    await inbox.receive([message("one")])
    opencode.takes = true
    await inbox.receive([])
    expect([said(), spooled()]).toEqual([[], ["one"]])
    opencode.time += 5_000
    opencode.answers = false
    await inbox.receive([])
    expect(said()).toEqual([])
    opencode.answers = true
    await inbox.receive([])
    expect(said()).toEqual(["one"])
    opencode.time += 60_000
    await create().receive([])
    expect([said(), spooled()]).toEqual([["one"], []])
  })

  test(promised("live-state.E1", "shares its file with another process of the same c2c session"), async () => {
    const { inbox, opencode, create, spooled } = setUp()
    opencode.isIdle = false
    await inbox.receive([message("one")])
    const inner = create()
    await inner.receive([message("two")])
    await inbox.receive([message("three")])
    await Promise.all([inner.receive([message("four")]), inbox.receive([message("five")])])
    expect(spooled().sort()).toEqual(["one", "two", "three", "four", "five"].sort())
  })

  test(promised("live-state.E1", "has each message on disk before it is tried, and tries no other"), async () => {
    const { inbox, path, said, spooled, log } = setUp()
    mkdirSync(dirname(dirname(path)), { recursive: true })
    writeFileSync(dirname(path), "in the way")
    await inbox.receive([message("one")])
    expect([said(), existsSync(path)]).toEqual([[], false])
    expect(log.lines.map(({ level }) => level)).toContain("error")
    rmSync(dirname(path))
    await inbox.receive([message("two")])
    expect([said(), spooled()]).toEqual([["one"], ["one", "two"]])
  })

  const keptOf = JSON.stringify([message("kept")])
  test.each([
    "",
    keptOf.slice(0, -9),
    keptOf.replace("ada", "ada\\"),
    '{"messages":[]}',
    '[{"from_alias":"ada"}]',
    "null",
  ])(promised("live-state.E1", "puts a file aside that holds %j, names it once, and goes on"), async (text) => {
    const { inbox, path, said, spooled, log } = setUp()
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    await inbox.receive([])
    await inbox.receive([message("one")])
    expect([said(), spooled()]).toEqual([["one"], ["one"]])
    const warnings = log.lines.filter(({ level }) => level !== "info")
    expect(warnings).toHaveLength(1)
    const kept = readdirSync(dirname(path)).filter((name) => name.endsWith(".unusable"))
    expect(JSON.stringify(warnings)).toContain(kept[0])
    expect(kept.map((name) => readFileSync(join(dirname(path), name), "utf8"))).toEqual([text])
  })

  test(promised("live-state.E1", "puts a link, a folder and a pipe in its file's place aside, too"), async () => {
    const { inbox, path, said, opencode, stored } = setUp()
    mkdirSync(dirname(path), { recursive: true })
    for (const make of [() => symlinkSync(path, path), () => mkdirSync(path), () => execFileSync("mkfifo", [path])]) {
      make()
      opencode.time += 10_000
      await inbox.receive([message("one")])
      expect(said()).toEqual(["one"])
      stored.length = 0
      rmSync(path)
    }
    expect(readdirSync(dirname(path)).filter((name) => name.endsWith(".unusable"))).toHaveLength(3)
  })
})

describe("a request", () => {
  beforeEach(() => void vi.useFakeTimers())

  const asked = { permission: "bash", patterns: ["rm *"], metadata: { command: "rm x" } }
  const PERMISSION = { id: "per_1", sessionID: "ses_1", ...asked }
  const QUESTION = { id: "que_1", questions: [{ question: "Which?", options: [{ label: "A" }, { label: "B" }] }] }

  const setUp = () => {
    const [sent, answered]: [string[], unknown[]] = [[], []]
    const answer = (...args: unknown[]) => {
      answered.push(args)
      return Promise.resolve({ kind: "ok" as const, value: undefined })
    }
    const approvals = createApprovals({
      c2cSession: "oc-1",
      supervisors: ["ada"],
      send: (alias, text) => sent.push(`${alias}: ${text}`),
      requests: { answerPermission: answer, answerQuestion: answer, rejectQuestion: answer },
      timeoutMs: 600_000,
      log: createRecordedLog(),
    })
    const ask = (properties: object) => approvals.asked({ type: "permission.asked", properties }, "ses_1")
    return { approvals, ask, sent, answered }
  }

  test(promised("live-state.E2", "goes to the supervisor with what to answer"), () => {
    const { ask, sent } = setUp()
    ask(PERMISSION)
    ask(PERMISSION)
    ask(QUESTION)
    expect(sent).toHaveLength(2)
    expect(sent[0]).toContain(
      "ada: PERMISSION REQUEST from oc-1:\n  action: bash: `rm x`\n  id: per_1\n  session: ses_1\n",
    )
    expect(sent[0]).toContain('c2c send oc-1 "permission:per_1:approve-once"')
    expect(sent[1]).toContain("  Q1: Which?\n      Options: A | B\n")
  })

  test.each<[object, string, unknown[]]>([
    [PERMISSION, "permission:per_1:approve-once", ["ses_1", "per_1", "once"]],
    [PERMISSION, "Well: permission:per_1:approve-always, ok", ["ses_1", "per_1", "always"]],
    [PERMISSION, "permission:per_1:reject", ["ses_1", "per_1", "reject"]],
    [QUESTION, "question:que_1:answer: B ", ["que_1", [["B"]]]],
    [QUESTION, "question:que_1:reject", ["que_1"]],
  ])(promised("live-state.E2", "%j is answered by %j"), (request, content, given) => {
    const { approvals, ask, answered } = setUp()
    ask(request)
    expect(approvals.take(message(content))).toBe(true)
    expect(answered).toEqual([given])
    expect([approvals.isWaiting(), vi.getTimerCount()]).toEqual([false, 0])
  })

  test(promised("live-state.E2", "that a person answered is over: a late answer changes nothing, is told so"), () => {
    const { approvals, ask, sent, answered } = setUp()
    ask(PERMISSION)
    approvals.ended("per_1")
    expect(approvals.take(message("permission:per_1:approve-once"))).toBe(true)
    expect(answered).toEqual([])
    expect(sent.at(-1)).toBe("ada: permission per_1: your answer came too late, the request is over")
    expect(vi.getTimerCount()).toBe(0)
  })

  test(promised("live-state.E2", "without an answer is rejected in the end, and the supervisor is told"), () => {
    const { ask, sent, answered } = setUp()
    ask(PERMISSION)
    vi.advanceTimersByTime(600_000)
    expect(answered).toEqual([["ses_1", "per_1", "reject"]])
    expect(sent.at(-1)).toBe("ada: permission per_1 timed out after 600s: rejected")
  })

  test(promised("live-state.E2", "is not decided by anybody who was not asked, and not by words about another"), () => {
    const { approvals, ask, answered } = setUp()
    ask(PERMISSION)
    expect(approvals.take(message("permission:per_1:approve-always", "mallory"))).toBe(false)
    expect(approvals.take(message("permission:per_2:approve-once"))).toBe(false)
    expect(approvals.take(message("question:per_1:answer:yes"))).toBe(false)
    expect(answered).toEqual([])
    approvals.endAll()
  })
})

describe("requests of several root sessions", () => {
  beforeEach(() => void vi.useFakeTimers())

  const setUp = (environment: Record<string, string> = {}) => {
    const answered: unknown[] = []
    const calls: (readonly string[])[] = []
    let root = "ses_a"
    const session = openC2cSession({
      c2c: { kind: "session", program: "c2c", sessionID: "oc-1", supervisors: ["ada"] },
      input: {
        directory: "/x",
        client: { postSessionIdPermissionsPermissionId: async (asked: unknown) => void answered.push(asked) } as never,
      },
      services: {
        run: async (argv) => {
          calls.push(argv)
          return { kind: "exited", exitCode: 0, stdout: "[]", stderr: "" } as never
        },
        sessions: {} as never,
        state: createStateFolder(temporaryFolder()),
      },
      environment,
      root: () => ({ sessionID: root, isIdle: false }),
      log: createRecordedLog(),
    })
    const receive = (type: string, properties: Record<string, unknown>) => {
      for (const observed of readEvent({ type, properties })) session.receive(observed, { type, properties })
    }
    const sent = () => calls.flatMap(([, command, , text = ""]) => (command === "send" ? [text] : []))
    receive("permission.asked", { id: "per_a", sessionID: "ses_a", permission: "bash" })
    root = "ses_b"
    return { receive, answered, sent }
  }

  test(promised("live-state.E2", "each ends with its own session's turn"), async () => {
    const { receive, answered, sent } = setUp()
    receive("session.idle", { sessionID: "ses_b" })
    await vi.advanceTimersByTimeAsync(600_000)
    expect(answered).toMatchObject([{ path: { id: "ses_a", permissionID: "per_a" }, body: { response: "reject" } }])
    expect(sent().at(-1)).toContain("per_a timed out")
  })

  test.each([
    ["permission.replied", { requestID: "per_a" }],
    ["session.idle", {}],
  ])(promised("live-state.E2", "each is over by its own %s while another session is the root"), async (type, about) => {
    const { receive, answered, sent } = setUp()
    receive("permission.asked", { id: "per_c", sessionID: "ses_c", permission: "bash" })
    receive(type, { sessionID: "ses_a", ...about })
    await vi.advanceTimersByTimeAsync(600_000)
    expect([answered, sent().length]).toEqual([[], 1])
  })

  test(promised("live-state.E2", "none is rejected before a deadline longer than a timer can be"), async () => {
    const { answered, sent } = setUp({ C2C_PERMISSION_TIMEOUT_MS: "2592000000" })
    await vi.advanceTimersByTimeAsync(600_000)
    expect([answered, sent().length]).toEqual([[], 1])
  })
})
