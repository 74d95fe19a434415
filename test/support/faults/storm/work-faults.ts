import { execFileSync } from "node:child_process"
import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { ErrorCode } from "../../../../.opencode/baton/pass-over/errors.ts"
import type { TaskProject } from "../../opencode/task-project.ts"
import { type ChildBehaviour, CORRECTION, type Fault, type RootBehaviour, SECRET_TEXT } from "../fault.ts"
import { DAMAGES, stateFolder } from "../fault-stored-table.ts"
import { clientFault } from "../fault-table.ts"

const childFault = (name: string, child: ChildBehaviour, policy?: unknown): Fault => ({
  name,
  slots: ["child", ...(policy === undefined ? [] : ["policy"])],
  needs: ["pass"],
  child,
  policy,
})

const rootFault = (name: string, root: RootBehaviour, needs: "pass" | "code", policy?: unknown): Fault => ({
  name,
  slots: ["root", ...(policy === undefined ? [] : ["policy"])],
  needs: [needs],
  root,
  policy,
})

/** Breaks a client call that a pass needs. */
const callFault = (call: string, how: string): Fault => ({ ...clientFault(call, how), needs: ["pass"] })

/** The fault that leads to each error of a pass. */
const FAULT_OF_ERROR: Record<ErrorCode, Fault> = {
  E001: rootFault("work is passed to an unknown subagent", "unknown subagent", "pass"),
  E002: childFault("a subagent passes over too deep", "deeper", { defaults: { max_chain_depth: 1 } }),
  E003: childFault("a subagent passes over to itself", "cycle"),
  E004: rootFault("a session has used up its passes", "one more pass", "pass", {
    defaults: { max_passes_per_session: 1 },
  }),
  E010: childFault("a subagent never answers", "hang"),
  E011: childFault("a subagent's model fails", "crash"),
  E020: callFault("session.get", "answers an error"),
  E021: childFault("a subagent returns what is no work output", "wrong return"),
  E022: rootFault("a file changes while a pass holds it", "conflict", "code"),
  E023: rootFault("an unknown pass is applied", "unknown pass", "code"),
  E024: rootFault("a pass is applied twice", "applied twice", "code"),
  E030: {
    name: "the policy cannot be used",
    slots: ["policy"],
    needs: ["pass"],
    policy: '{ "defaults": { "timeout_ms": "soon" } ',
  },
}

export const PASS_FAULTS: readonly Fault[] = [
  ...Object.values(FAULT_OF_ERROR),
  childFault("a subagent's model fails after it changed files", "crash late"),
  childFault("a subagent ends without a return", "prose"),
  callFault("session.create", "rejects"),
  callFault("session.prompt", "answers an error"),
]

const plantRecord = (task: TaskProject, name: string, content: string | Buffer): void => {
  mkdirSync(stateFolder(task, "outbox"), { recursive: true })
  writeFileSync(join(stateFolder(task, "outbox"), `${name}.json`), content)
}

const outboxFault = (name: string, parked: number, arrange: NonNullable<Fault["arrange"]>): Fault => ({
  name: `the outbox holds ${name}`,
  // While the state is broken, no files can be added to it.
  slots: ["outbox", ".opencode/state"],
  parked,
  arrange,
})

const createdAt = "2026-01-01T00:00:00.000Z"
const renderEntry = (entry: Record<string, unknown>): string => JSON.stringify({ version: 1, createdAt, entry })

/** Almost the ledger's limit for a description: a handoff does not fit after it. */
const FULL_DESCRIPTION_CHARACTERS = 129_900
/** Longer than a lock's holder may be silent. */
const STALE_LOCK_SECONDS = 600

const OUTBOX_FAULTS: readonly Fault[] = [
  outboxFault("damaged records", DAMAGES.length, (task) => {
    for (const [index, { content }] of DAMAGES.entries())
      plantRecord(task, `000000000000${index}-000000-damaged`, content)
  }),
  outboxFault("a record for a task that the ledger does not know", 1, (task) => {
    const entry = { kind: "log", taskID: "ts-0000000000ff", message: "For nobody." }
    plantRecord(task, "0000000000001-000000-aaaaaaaa", renderEntry(entry))
  }),
  outboxFault("a handoff that finds no room", 1, async (task) => {
    const specification = "x".repeat(FULL_DESCRIPTION_CHARACTERS)
    const taskID = await task.ledger.addTask({ title: "Full", specification, definitionOfDone: "none" })
    const entry = { kind: "handoff", taskID, sessionID: "ses_of_nobody", section: "y".repeat(5_000) }
    plantRecord(task, "0000000000002-000000-bbbbbbbb", renderEntry(entry))
  }),
  outboxFault("the lock of a process that has ended", 0, (task) => {
    const lock = join(stateFolder(task, "outbox"), "lock")
    const at = Date.now() / 1000 - STALE_LOCK_SECONDS
    mkdirSync(stateFolder(task, "outbox"), { recursive: true })
    writeFileSync(lock, "cut off in the middle")
    utimesSync(lock, at, at)
  }),
]

const handoffFault = (name: string, files: readonly string[], prepare: NonNullable<Fault["prepare"]>): Fault => ({
  name: `a handoff names ${name}`,
  slots: ["handoff files"],
  needs: ["handoff"],
  handoffFiles: files,
  prepare,
})

const HANDOFF_FAULTS: readonly Fault[] = [
  handoffFault("files outside the project", ["../sibling/secret.txt", "/etc/hostname", "to-sibling"], ({ project }) =>
    symlinkSync("../sibling/secret.txt", join(project.directory, "to-sibling")),
  ),
  handoffFault("secrets", [".env", "id_rsa"], ({ project }) => {
    project.write(".env", `KEY=${SECRET_TEXT}\n`)
    project.write("id_rsa", `-----BEGIN OPENSSH PRIVATE KEY-----\n${SECRET_TEXT}\n`)
  }),
  handoffFault("what is no text file", ["src", "pipe", "binary.bin", "/dev/zero"], ({ project }) => {
    execFileSync("mkfifo", [join(project.directory, "pipe")])
    writeFileSync(join(project.directory, "binary.bin"), Buffer.from([0, 1, 2, 0xff, 0xfe]))
  }),
  handoffFault(
    "too much",
    ["big.txt", ...Array.from({ length: 30 }, (_, index) => `many/${index}.txt`)],
    ({ project }) => {
      project.write("big.txt", "x\n".repeat(1_500_000))
      for (let index = 0; index < 30; index += 1) project.write(`many/${index}.txt`, "one\n")
    },
  ),
]

const SECRET_CORRECTION = `No, use the key sk-ant-api03-${SECRET_TEXT}${"Ab1".repeat(30)}-AA instead of the old key in the client.`

const correctionFault = (name: string, text: string, isSecret: boolean): Fault => ({
  name: `a correction ${name}`,
  slots: ["correction"],
  needs: ["correction"],
  correction: { text, isSecret },
})

/** Faults of the outbox, of a handoff's files and of learnings, and the end of OpenCode itself. */
export const RECORD_FAULTS: readonly Fault[] = [
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
