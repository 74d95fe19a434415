import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { shareBundle } from "../../support/files/bundle-project.ts"
import { handoffRecord } from "../../support/handoff-record.ts"
import { runSql } from "../../support/ledger/ledger-rows.ts"
import { endsOf } from "../../support/opencode/ends.ts"
import { NEWEST, type OpenCodeBinary } from "../../support/opencode/opencode-binary.ts"

const createProject = shareBundle()

/** The columns that are read; the end-to-end tests have the real tables. */
const TABLES = [
  "CREATE TABLE project (id TEXT, worktree TEXT, sandboxes TEXT)",
  "CREATE TABLE session (id TEXT, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, time_updated INT, revert TEXT)",
  "CREATE TABLE message (id TEXT, session_id TEXT, time_created INT, data TEXT)",
  "CREATE TABLE part (id TEXT, message_id TEXT, data TEXT)",
]

type Row = { directory: string; texts: readonly string[]; project?: string; parent?: string; revert?: string }

const quote = (value: string | undefined): string => (value === undefined ? "NULL" : `'${value.replaceAll("'", "''")}'`)

/** Writes OpenCode's database; session N has the id `ses_N` and its messages `msg_N_0` and so on, ten seconds apart. */
const store = (path: string, worktree: string, rows: readonly Row[]): void => {
  mkdirSync(dirname(path), { recursive: true })
  const inserts = rows.flatMap(({ directory, texts, project = "p", parent, revert }, n) => [
    `INSERT INTO session VALUES ('ses_${n}', ${quote(project)}, ${quote(parent)}, ${quote(directory)}, 'Title ${n}', ${n * 100_000 + 90_000}, ${quote(revert)})`,
    ...texts.flatMap((text, m) => [
      `INSERT INTO message VALUES ('msg_${n}_${m}', 'ses_${n}', ${n * 100_000 + m * 10_000}, '{"role":"user"}')`,
      `INSERT INTO part VALUES ('prt_${m}', 'msg_${n}_${m}', ${quote(JSON.stringify({ type: "text", text }))})`,
    ]),
  ])
  const projects = [
    `('p', ${quote(worktree)}, '["/elsewhere/worktree"]')`,
    "('global', '/', '[]')",
    "('q', '/other', '[]')",
  ]
  runSql(path, [...TABLES, `INSERT INTO project VALUES ${projects.join(", ")}`, ...inserts])
}

type Line = { where: string; id: string; excerpt: string; read: string; by?: string; message?: string }

const openSearch = (binary: OpenCodeBinary) => {
  const opened = createProject(binary)
  const database = join(opened.project, ".local/share/opencode/opencode.db")
  return {
    ...opened,
    database,
    search: (...args: string[]) => opened.baton("search", ...args),
    lines: (...args: string[]): Line[] => {
      const { stdout } = opened.baton("search", "--json", ...args)
      return stdout === ""
        ? []
        : stdout
            .trim()
            .split("\n")
            .map((line) => JSON.parse(line))
    },
  }
}

test.each(endsOf(0))(
  promised(
    "people.E1",
    "sessions, tasks and handoffs are found together, with the way to read more, on OpenCode $version",
  ),
  (binary) => {
    const { project, database, search, lines, prog, write } = openSearch(binary)
    expect(search("crlf")).toMatchObject({ status: 1, stdout: "Nothing found: crlf\n", stderr: "" })
    const name = project.split("/").at(-1) ?? ""
    const id = prog("add", "Teach the lexer CRLF", "-p", name).stdout.trim()
    prog("log", id, "The CRLF of the lexer is done")
    // prog keeps whole seconds of a log's lines.
    runSql(join(project, ".prog/prog.db"), ["UPDATE items SET updated_at = '2026-01-01 00:00:00 +0000 UTC'"])
    prog("add", "The lexer and CRLF of others", "-p", "other")
    write(
      ".opencode/state/handoffs/handoff-1.json",
      handoffRecord("ses_0", ["ses_1"], { id: "1", draft: "lexer, CRLF" }),
    )
    store(database, project, [{ directory: project, texts: ["Keep CRLF\nin the Lexer.", "Another"] }])
    expect(lines("lexer", "crlf").map(({ where, id: found, excerpt, read }) => [where, found, excerpt, read])).toEqual([
      [
        "session",
        "ses_0",
        "Keep CRLF in the Lexer.",
        'read_session {"sessionID":"ses_0","words":"lexer crlf","any":true}',
      ],
      ["task", id, "The CRLF of the lexer is done", `prog show ${id}`],
      ["task", id, "Teach the lexer CRLF", `prog show ${id}`],
      ["handoff", "1", "lexer, CRLF", "baton handoffs --draft 1"],
    ])
    const { status, stdout, stderr } = search("lexer crlf")
    expect([status, stderr]).toEqual([0, ""])
    expect(stdout).toMatch(
      /^Sessions\n {2}1970-01-01 00:00 {2}ses_0 {2}Title 0\n {4}read_session .*\n {4}user: Keep CRLF/,
    )
    expect(stdout.match(/^\S.*$/gm)).toEqual(["Sessions", "Tasks", "Handoffs"])
    expect(search("lexer", "nowhere")).toMatchObject({ status: 1, stdout: "Nothing found: lexer nowhere\n" })
    expect(search("--json", "nowhere")).toMatchObject({ status: 1, stdout: "", stderr: "Nothing found: nowhere\n" })
    for (const wrong of [[], [" "], ["x", "--limit", "0"], ["x", "--unknown"]]) expect(search(...wrong).status).toBe(2)
  },
)

test(promised("people.E1", "only this project's sessions are searched, its subagents' and worktrees' too"), () => {
  const { project, database, lines } = openSearch(NEWEST)
  const texts = ["needle"]
  store(database, project, [
    { directory: project, texts },
    { directory: join(project, "below"), texts, project: "q" },
    { directory: project, texts, parent: "ses_0" },
    { directory: "/elsewhere/worktree", texts },
    { directory: `${project}-beside`, texts, project: "q" },
    { directory: "/other", texts, project: "q" },
    { directory: dirname(project), texts, project: "global" },
  ])
  expect(lines("needle").map(({ id, by }) => `${id} ${by}`)).toEqual([
    "ses_3 user",
    "ses_2 agent",
    "ses_1 user",
    "ses_0 user",
  ])
})

test(promised("people.E1", "what was undone is not found; each kind has its limit, and one session three"), () => {
  const { project, database, lines, search } = openSearch(NEWEST)
  const many = ["needle", "needle", "needle", "needle"]
  store(database, project, [
    { directory: project, texts: many },
    { directory: project, texts: many, revert: JSON.stringify({ messageID: "msg_1_1" }) },
    { directory: project, texts: many, revert: JSON.stringify({ messageID: "msg_2_0", partID: "prt_1" }) },
  ])
  const all = ["msg_2_0", "msg_1_0", "msg_0_3", "msg_0_2", "msg_0_1"]
  expect(lines("needle").map(({ message }) => message)).toEqual(all)
  expect(lines("needle", "--limit", "2").map(({ message }) => message)).toEqual(["msg_2_0", "msg_1_0"])
  expect(search("needle", "--limit", "2").stdout).toContain("(The newest 2 of a kind; --limit shows more.)")
})

test(
  promised(
    "people.E1",
    "baton search shows neither a secret nor what a terminal acts on, and names what cannot be read",
  ),
  () => {
    const { project, database, search, write } = openSearch(NEWEST)
    const secret = `ghp_${"a1B2".repeat(10)}`
    store(database, project, [{ directory: project, texts: [`needle \u001b[31mred\u0007 token ${secret}`] }])
    for (const options of [[], ["--json"]]) {
      const { stdout } = search("needle", ...options)
      expect(stdout).toMatch(/needle .*red.* token \[redacted\]/)
      expect(stdout).not.toMatch(/(?!\n)\p{Cc}/u)
    }
    expect(search(secret)).toMatchObject({ status: 1, stdout: `Nothing found: [redacted]\n` })
    writeFileSync(database, "no database, and long enough to be one ".repeat(100))
    write(".opencode/state/handoffs/handoff-1.json", handoffRecord("ses_0", [], { id: "1", draft: "a needle" }))
    const damaged = search("needle")
    expect(damaged.status).toBe(1)
    expect(damaged.stdout).toContain("Handoffs\n")
    expect(damaged.stderr).toMatch(/^search: OpenCode's sessions cannot be read: .*not a database/)
  },
)
