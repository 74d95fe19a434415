/** `baton search`. Exits with 0 when something is found and all could be read, 1 when not, 2 for a wrong command line. */

import { existsSync, realpathSync } from "node:fs"
import { parseArgs } from "node:util"
import { chooseProject, complain, localMinute, print, printableLine, printJSON, runCommand } from "../host/cli.ts"
import { describeError, SILENT } from "../host/log.ts"
import { openCodeDatabase, projectSessions } from "../host/opencode-database.ts"
import { redact } from "../host/secrets.ts"
import { openReadOnly, type ReadOnlyDatabase } from "../host/sqlite.ts"
import { createStateFolder } from "../host/state.ts"
import { splitWords } from "../host/words.ts"
import { findFolderProject } from "../ledger/embedded/folder-project.ts"
import { ledgerTexts } from "../ledger/ledger-texts.ts"
import { databasePath } from "../ledger/runner.ts"
import { createTaskStore } from "../task/session-task.ts"
import { createHandoffRecords } from "./records.ts"
import { type Hit, searchHandoffs, searchLedger, searchSessions } from "./search.ts"

const FAILED_EXIT_CODE = 1
const DEFAULT_LIMIT = 20
const MAX_LIMIT = 1_000

const parse = (args: readonly string[], here: string) => {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      json: { type: "boolean", default: false },
      tools: { type: "boolean", default: false },
      limit: { type: "string", default: String(DEFAULT_LIMIT) },
      dir: { type: "string" },
    },
  })
  const typed = positionals.join(" ").trim()
  const words = splitWords(typed)
  if (words.length === 0) throw new Error("expected words to search for, received none")
  const limit = Number(values.limit)
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw new Error(`expected --limit 1 to ${MAX_LIMIT}, received ${values.limit}`)
  return { ...values, typed, words, limit, root: chooseProject(values.dir, here) }
}

type Request = ReturnType<typeof parse>

const withDatabase = async (
  path: string,
  search: (database: ReadOnlyDatabase) => Hit[] | Promise<Hit[]>,
): Promise<Hit[]> => {
  const database = await openReadOnly(path)
  try {
    return await search(database)
  } finally {
    database.close()
  }
}

const inSessions = (request: Request): Promise<Hit[]> => {
  const roots = [...new Set([request.root, realpathSync(request.root)])]
  return withDatabase(openCodeDatabase(), (database) =>
    searchSessions(projectSessions(database, roots), request, request.tools ? "full" : "titles"),
  )
}

/** The tasks that are filed under the folder's name, and those that its sessions worked on. */
const inLedger = (request: Request): Promise<Hit[]> =>
  withDatabase(databasePath(process.env), async (database) => {
    const store = createTaskStore({ state: createStateFolder(request.root), log: SILENT })
    const records = await Promise.all((await store.keys()).map(store.read))
    const ids = records.flatMap((record) => record?.steps.map(({ taskID }) => taskID) ?? [])
    return searchLedger(ledgerTexts(database, { project: await findFolderProject(request.root), ids }), request)
  })

const inHandoffs = async (request: Request): Promise<Hit[]> =>
  searchHandoffs(await createHandoffRecords({ state: createStateFolder(request.root), log: SILENT }).list(), request)

const HEADINGS = { session: "Sessions", task: "Tasks", handoff: "Handoffs" } as const

const renderHits = (hits: readonly Hit[]): string[] => {
  let shown = ""
  return hits.flatMap((hit) => {
    const isNext = hit.id === shown
    shown = hit.id
    const about = hit.where === "session" ? hit.by : hit.where === "task" ? hit.part : `from ${hit.from}`
    const lines = [`    ${about}: ${printableLine(hit.excerpt)}`]
    return isNext ? lines : [`  ${localMinute(hit.date)}  ${hit.id}  ${hit.title}`, `    ${hit.read}`, ...lines]
  })
}

/** Hits of one session or task stand together, where its newest one is. */
const together = (hits: readonly Hit[]): Hit[] =>
  [...new Set(hits.map(({ id }) => id))].flatMap((id) => hits.filter((hit) => hit.id === id))

const run = async (request: Request): Promise<number> => {
  let isWhole = true
  const attempt = async (what: string, path: string | undefined, search: () => Promise<Hit[]>): Promise<Hit[]> => {
    // A ledger that was never used has nothing to be found.
    if (path !== undefined && !existsSync(path)) return []
    try {
      return await search()
    } catch (error) {
      isWhole = false
      complain(`search: ${what} cannot be read: ${describeError(error)}`)
      return []
    }
  }
  const groups = [
    await attempt("OpenCode's sessions", openCodeDatabase(), () => inSessions(request)),
    await attempt("the ledger", databasePath(process.env), () => inLedger(request)),
    await attempt("handoffs", undefined, () => inHandoffs(request)),
  ]
  const hits = groups.flat()
  for (const hit of request.json ? hits : []) printJSON(hit, 0)
  if (hits.length === 0) (request.json ? complain : print)(`Nothing found: ${redact(request.typed)}`)
  else if (!request.json) {
    const texts = groups.flatMap(([first, ...rest]) =>
      first === undefined ? [] : [[HEADINGS[first.where], ...renderHits(together([first, ...rest]))].join("\n")],
    )
    print(texts.join("\n\n"))
  }
  const isCut = groups.some(({ length }) => length >= request.limit)
  if (isCut && !request.json) print(`\n(The newest ${request.limit} of a kind; --limit shows more.)`)
  return hits.length > 0 && isWhole ? 0 : FAILED_EXIT_CODE
}

await runCommand({ name: "search", parse, projectsOf: ({ root }) => [root], run })
