import { execFileSync } from "node:child_process"
import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DAMAGES, stateFolder } from "../fault-stored-table.ts"
import { CORRECTION, type Scene, SECRET_TEXT, type StormFault } from "./storm-fault.ts"

const plantRecord = ({ task }: Scene, name: string, content: string | Buffer): void => {
  mkdirSync(stateFolder(task, "outbox"), { recursive: true })
  writeFileSync(join(stateFolder(task, "outbox"), `${name}.json`), content)
}

const outboxFault = (name: string, parked: number, arrange: StormFault["arrange"]): StormFault => ({
  name: `the outbox holds ${name}`,
  // Where the state is broken at the same time nothing can be planted.
  slots: ["outbox", ".opencode/state"],
  when: "start",
  parked,
  ...(arrange ? { arrange } : {}),
})

const createdAt = "2026-01-01T00:00:00.000Z"
const renderEntry = (entry: Record<string, unknown>): string => JSON.stringify({ version: 1, createdAt, entry })

/** About all that the ledger takes as a description: a handoff finds no room behind it. */
const FULL_DESCRIPTION_CHARACTERS = 129_900
/** Longer than a holder may be silent. */
const STALE_LOCK_SECONDS = 600

const OUTBOX_FAULTS: readonly StormFault[] = [
  outboxFault("damaged records", DAMAGES.length, (scene) => {
    for (const [index, { content }] of DAMAGES.entries())
      plantRecord(scene, `000000000000${index}-000000-damaged`, content)
  }),
  outboxFault("a record for a task that the ledger does not know", 1, (scene) => {
    const entry = { kind: "log", taskID: "ts-0000000000ff", message: "For nobody." }
    plantRecord(scene, "0000000000001-000000-aaaaaaaa", renderEntry(entry))
  }),
  outboxFault("a handoff that finds no room", 1, async (scene) => {
    const specification = "x".repeat(FULL_DESCRIPTION_CHARACTERS)
    const taskID = await scene.task.ledger.addTask({ title: "Full", specification, definitionOfDone: "none" })
    const entry = { kind: "handoff", taskID, sessionID: "ses_of_nobody", section: "y".repeat(5_000) }
    plantRecord(scene, "0000000000002-000000-bbbbbbbb", renderEntry(entry))
  }),
  outboxFault("the lock of a process that has ended", 0, ({ task }) => {
    const lock = join(stateFolder(task, "outbox"), "lock")
    const at = Date.now() / 1000 - STALE_LOCK_SECONDS
    mkdirSync(stateFolder(task, "outbox"), { recursive: true })
    writeFileSync(lock, "cut off in the middle")
    utimesSync(lock, at, at)
  }),
]

const handoffFault = (name: string, files: readonly string[], prepare: StormFault["prepare"]): StormFault => ({
  name: `a handoff names ${name}`,
  slots: ["handoff files"],
  when: "start",
  needs: ["handoff"],
  handoffFiles: files,
  ...(prepare ? { prepare } : {}),
})

const HANDOFF_FAULTS: readonly StormFault[] = [
  handoffFault("files outside the project", ["../sibling/secret.txt", "/etc/hostname", "to-sibling"], ({ task }) =>
    symlinkSync("../sibling/secret.txt", join(task.project.directory, "to-sibling")),
  ),
  handoffFault("secrets", [".env", "id_rsa"], ({ task }) => {
    task.project.write(".env", `KEY=${SECRET_TEXT}\n`)
    task.project.write("id_rsa", `-----BEGIN OPENSSH PRIVATE KEY-----\n${SECRET_TEXT}\n`)
  }),
  handoffFault("what is no text file", ["src", "pipe", "binary.bin", "/dev/zero"], ({ task }) => {
    execFileSync("mkfifo", [join(task.project.directory, "pipe")])
    writeFileSync(join(task.project.directory, "binary.bin"), Buffer.from([0, 1, 2, 0xff, 0xfe]))
  }),
  handoffFault(
    "too much",
    ["big.txt", ...Array.from({ length: 30 }, (_, index) => `many/${index}.txt`)],
    ({ task }) => {
      task.project.write("big.txt", "x\n".repeat(1_500_000))
      for (let index = 0; index < 30; index += 1) task.project.write(`many/${index}.txt`, "one\n")
    },
  ),
]

const SECRET_CORRECTION = `No, use the key sk-ant-api03-${SECRET_TEXT}${"Ab1".repeat(30)}-AA instead of the old key in the client.`

const correctionFault = (name: string, text: string, isSecret: boolean): StormFault => ({
  name: `a correction ${name}`,
  slots: ["correction"],
  when: "start",
  needs: ["correction"],
  correction: { text, isSecret },
})

/** What becomes of what is owed: to the outbox, to a handoff's files, to learnings; and the end of OpenCode itself. */
export const RECORD_FAULTS: readonly StormFault[] = [
  ...OUTBOX_FAULTS,
  ...HANDOFF_FAULTS,
  correctionFault("holds a secret", SECRET_CORRECTION, true),
  correctionFault(
    "comes in a huge message",
    `${"This is what the log of the build says today. ".repeat(4_000)}\n\n${CORRECTION}`,
    false,
  ),
  {
    name: "OpenCode is killed",
    slots: ["kill"],
    when: "running",
    kills: true,
    arrange: ({ killOpenCode }, delayMs) => {
      setTimeout(killOpenCode, delayMs)
    },
  },
]
