import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { delimiter, join } from "node:path"
import type { TaskProject } from "../opencode/task-project.ts"
import type { CompactionFault } from "./fault.ts"
import { lineWith } from "./fault-table.ts"

const programs = ({ project }: TaskProject): string => join(project.home, "programs")

const putProgram = (task: TaskProject, body: string): void => {
  mkdirSync(programs(task), { recursive: true })
  // A shell that still runs the old program keeps reading its own file.
  rmSync(join(programs(task), "prog"), { force: true })
  writeFileSync(join(programs(task), "prog"), `#!/bin/sh\n${body}\n`, { mode: 0o755 })
}

/** Puts a working `prog` in place: the launcher of the project's own bundle under that name. */
const putWorkingProgram = (task: TaskProject): void => {
  const launcher = join(task.project.directory, ".opencode", "baton", "bin", "prog")
  putProgram(task, `BATON_LEDGER=embedded BATON_RUNTIME='${task.binary.path}' exec '${launcher}' "$@"`)
}

/** Made by the first call of `putWaitingProgram`'s program. */
export const askedFile = (file: string): string => `${file}.asked`

/** Puts a `prog` in place that keeps its answer until the file is there. */
export const putWaitingProgram = (task: TaskProject, file: string): void => {
  const launcher = join(task.project.directory, ".opencode", "baton", "bin", "prog")
  const ask = `answer=$(BATON_LEDGER=embedded BATON_RUNTIME='${task.binary.path}' '${launcher}' "$@"); status=$?`
  const wait = `while [ ! -e '${file}' ]; do sleep 0.1; done`
  const note = `[ -e '${askedFile(file)}' ] || : > '${askedFile(file)}'`
  putProgram(task, `# github.com/baiirun/prog\n${note}\n${ask}\n${wait}\nprintf '%s\\n' "$answer"\nexit $status`)
}

const ledgerFault = (name: string, arrange: (task: TaskProject) => void, reason: string): CompactionFault => ({
  name: `prog ${name}`,
  when: "any",
  options: { environment: (task) => ({ PATH: pathWithFakeProg(task), BATON_LEDGER: "real" }) },
  prepare: putWorkingProgram,
  arrange,
  lift: putWorkingProgram,
  expectedLog: lineWith("task not read from the ledger", reason),
  record: "outbox",
  refuses: "ledger",
})

const brokenProgram = (name: string, body: string, reason: string): CompactionFault =>
  ledgerFault(name, (task) => putProgram(task, `# github.com/baiirun/prog\n${body}`), reason)

const withoutProgram = (name: string, reason: string): CompactionFault =>
  ledgerFault(name, (task) => rmSync(join(programs(task), "prog"), { force: true }), reason)

/** Knows every task and hangs on a write. */
const HANGS_ON_WRITES = `if [ "$1" = show ]; then
printf '{"id":"%s","title":"t","type":"task","status":"open","project":"p","description":"","logs":[]}' "$4"; exit 0; fi
sleep 600`

export const HANGING_LEDGERS: readonly CompactionFault[] = [
  brokenProgram("hangs", "sleep 600", "prog show did not end within \\d+ ms"),
  brokenProgram("hangs on writes", HANGS_ON_WRITES, "prog log did not end within \\d+ ms"),
]

/** Faults of the ledger's program, one after the other in one session; after the last one Baton stops calling it. */
export const LEDGER_FAULTS: readonly CompactionFault[] = [
  withoutProgram("is missing", "BATON_LEDGER asks for the real prog and PATH has none"),
  brokenProgram("exits with 1", "echo 'Error: database is locked' >&2; exit 1", "exited with 1: database is locked"),
  brokenProgram("prints garbage and exits with 0", "printf '\\001<html>no task'", "prog show printed .*no task"),
  brokenProgram("is killed by a signal", "kill -9 $$", "prog show exited with 137"),
  withoutProgram("is removed while OpenCode runs", "not an executable file and not on PATH|PATH has none"),
  ...HANGING_LEDGERS.slice(0, 1),
]

export const FOREIGN_PROG: CompactionFault = {
  name: "prog is another program",
  options: { environment: (task) => ({ PATH: pathWithFakeProg(task), BATON_LEDGER: "" }) },
  arrange: (task) => putProgram(task, "echo 'a progress bar'"),
  expectedLog: lineWith("a program called prog is not the ledger and is not used", "it names neither"),
}

/** The machine's PATH without `prog`, after the folder with the faults' own `prog`. */
export const pathWithFakeProg = (task: TaskProject): string =>
  [
    programs(task),
    ...(process.env.PATH ?? "").split(delimiter).filter((folder) => !existsSync(join(folder, "prog"))),
  ].join(delimiter)
