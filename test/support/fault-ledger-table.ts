import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { delimiter, join } from "node:path"
import type { Fault } from "./fault-sequence.ts"
import { lineWith } from "./fault-table.ts"
import type { TaskProject } from "./task-project.ts"

const programs = ({ project }: TaskProject): string => join(project.home, "programs")

const putProgram = (task: TaskProject, body: string): void => {
  mkdirSync(programs(task), { recursive: true })
  writeFileSync(join(programs(task), "prog"), `#!/bin/sh\n${body}\n`, { mode: 0o755 })
}

const ledgerFault = (name: string, body: string, reason: string): Fault => ({
  name: `prog ${name}`,
  arrange: (task) => putProgram(task, `# github.com/baiirun/prog\n${body}`),
  lift: () => {},
  expectedLog: lineWith("task not read from the ledger", reason),
  record: "outbox",
})

const withoutProgram = (name: string, reason: string): Fault => ({
  name,
  arrange: (task) => rmSync(join(programs(task), "prog"), { force: true }),
  lift: () => {},
  expectedLog: lineWith("task not read from the ledger", reason),
  record: "outbox",
})

/** Faults of the ledger's program, one after the other in one session; the last one makes Baton leave it alone. */
export const LEDGER_FAULTS: readonly Fault[] = [
  withoutProgram("prog is missing", "BATON_LEDGER asks for the real prog and PATH has none"),
  ledgerFault("exits with 1", "echo 'Error: database is locked' >&2; exit 1", "exited with 1: database is locked"),
  ledgerFault("prints garbage and exits with 0", "printf '\\001<html>no task'", "prog show printed .*no task"),
  ledgerFault("is killed by a signal", "kill -9 $$", "prog show exited with 137"),
  withoutProgram("prog is removed while OpenCode runs", "not an executable file and not on PATH|PATH has none"),
  ledgerFault("hangs", "sleep 600", "prog show did not end within \\d+ ms"),
]

/** It knows every task, and never comes back from a write. */
const HANGS_ON_WRITES = `if [ "$1" = show ]; then
printf '{"id":"%s","title":"t","type":"task","status":"open","project":"p","description":"","logs":[]}' "$4"; exit 0; fi
sleep 600`

/** Faults in which a call never ends. */
export const HANGING_LEDGERS: readonly Fault[] = [
  ledgerFault("hangs", "sleep 600", "prog show did not end within \\d+ ms"),
  ledgerFault("hangs on writes", HANGS_ON_WRITES, "prog log did not end within \\d+ ms"),
]

export const FOREIGN_PROG: Fault = {
  name: "prog is another program",
  arrange: (task) => putProgram(task, "echo 'a progress bar'"),
  lift: () => {},
  expectedLog: lineWith("a program called prog is not the ledger and is not used", "it names neither"),
  record: "ledger",
}

/** The machine's PATH without any `prog`, behind the folder in which the faults put theirs. */
export const pathWithFakeProg = (task: TaskProject): string =>
  [
    programs(task),
    ...(process.env.PATH ?? "").split(delimiter).filter((folder) => !existsSync(join(folder, "prog"))),
  ].join(delimiter)
