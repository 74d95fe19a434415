import { KNOWN_FAULTS } from "./known-faults.ts"
import { LIVE_STATE_FAULTS } from "./live-state-faults.ts"
import { FAULT_OF_ERROR, PASS_FAULTS } from "./pass-faults.ts"
import { RECORD_FAULTS } from "./record-faults.ts"
import type { StormFault } from "./storm-fault.ts"

/** Every fault that a run of the storm may meet. A seed's plan depends on their order. */
export const CATALOGUE: readonly StormFault[] = [
  ...KNOWN_FAULTS,
  ...LIVE_STATE_FAULTS,
  ...PASS_FAULTS,
  ...RECORD_FAULTS,
]

export const faultNamed = (name: string): StormFault => {
  const found = CATALOGUE.find((fault) => fault.name === name)
  if (found === undefined) throw new Error(`the storm knows no fault '${name}'`)
  return found
}

/**
 * Which faults of the storm stand for each row of a page's table, by the row's first cell. A test compares this with
 * the pages, so that a row that is added there has to be added here.
 */
export const FAULTS_OF_ROWS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  "docs/faults.md": {
    "`prog` is missing (and asked for with `BATON_LEDGER=real`), is removed while OpenCode runs": [
      "prog is missing",
      "prog is removed while OpenCode runs",
    ],
    "`prog` exits with 1, prints garbage and exits with 0, is killed by a signal": [
      "prog exits with 1",
      "prog prints garbage and exits with 0",
      "prog is killed by a signal",
    ],
    "`prog` hangs, hangs on writes": ["prog hangs", "prog hangs on writes"],
    "`prog` is another program": ["prog is another program"],
    "`handoff.md` is missing, is a folder, is a link to itself, may not be read, is binary, has 10 MB, is empty, is a named pipe":
      [
        "handoff.md is missing",
        "handoff.md is a folder",
        "handoff.md is a link to itself",
        "handoff.md may not be read",
        "handoff.md is binary",
        "handoff.md has 10 MB",
        "handoff.md is empty",
        "handoff.md is a named pipe",
      ],
    "`worker.md` is missing": ["worker.md is missing"],
    "`session.messages` answers an error, throws, rejects, hangs, answers nothing, answers a page of HTML, answers objects without their fields":
      [
        "session.messages answers an error",
        "session.messages throws",
        "session.messages rejects",
        "session.messages hangs",
        "session.messages answers nothing",
        "session.messages answers a page of HTML",
        "session.messages answers objects without their fields",
      ],
    "`session.todo` hangs, answers a page of HTML": ["session.todo hangs", "session.todo answers a page of HTML"],
    "`session.get` hangs": ["session.get hangs"],
    "`app.log` throws, rejects, hangs": ["app.log throws", "app.log rejects", "app.log hangs"],
    "`.opencode/state` is a file, may not be written": [
      ".opencode/state is a file",
      ".opencode/state may not be written",
    ],
    "the disk is full, the file system is read-only": ["the disk is full"],
    "a session's stored state is cut off in the middle, of a version to come, empty, binary": [
      "stored tasks cut off in the middle",
      "stored compactions of a version to come",
      "stored tasks empty",
      "stored compactions binary",
    ],
    "a record in the outbox is damaged": ["the outbox holds damaged records"],
    "two copies of the bundle are loaded, a global one and the project's": ["two copies of the bundle are loaded"],
    "`.opencode/node_modules` is empty": [".opencode/node_modules is empty"],
    "git is missing": ["git is missing"],
    "the project is no git repository": ["the project is no git repository"],
    "OpenCode is killed (`kill -9`)": ["OpenCode is killed"],
  },
  "docs/live-state-conformance.md": {
    "The writer's program is not there": ["the state writer is not there"],
    "It exits at once": ["the state writer exits at once"],
    "It never reads": ["the state writer never reads"],
    "It talks on both streams": ["the state writer talks on both streams"],
    "It will not end": ["the state writer will not end"],
    "It is killed at any moment, again and again": ["the state writer is killed"],
    "The embedded writer is killed again and again": ["the embedded state writer is killed"],
    "OpenCode is killed with `kill -9`": ["OpenCode is killed"],
    "A reader reads while it is written": ["a reader reads the statefile while it is written"],
    "Lines that are no JSON, too long, not UTF-8, unknown, out of order": [
      "the state writer gets lines that it cannot use",
    ],
    "A folder that cannot be written": ["the folder of the live state may not be written"],
    "Two processes with one id": ["a second OpenCode runs in the project"],
  },
  "docs/pass-over-reference.md": Object.fromEntries(
    Object.entries(FAULT_OF_ERROR).map(([code, { name }]) => [code, [name]]),
  ),
  "docs/handoff.md": {
    "outside the project": ["a handoff names files outside the project"],
    secrets: ["a handoff names secrets"],
    "no text file": ["a handoff names what is no text file"],
    "too much": ["a handoff names too much"],
  },
  "docs/outbox.md": {
    "A record for a task the ledger does not know.": [
      "the outbox holds a record for a task that the ledger does not know",
    ],
    "A file that is no record of this version.": ["the outbox holds damaged records"],
    "A handoff for which the specification alone leaves no room (130,000 bytes in all).": [
      "the outbox holds a handoff that finds no room",
    ],
  },
}
