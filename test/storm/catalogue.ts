import { execFileSync } from "node:child_process"
import { chmodSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { signalIfThere } from "../../.opencode/baton/host/process.ts"
import type { ErrorCode } from "../../.opencode/baton/pass-over/errors.ts"
import { CORRECTION, type Fault, type Scene, SECRET_TEXT } from "../support/faults/fault.ts"
import { CLAIM_FAULTS, CLAIM_STEPS, COMPANION_MESSAGE } from "../support/faults/fault-claim-table.ts"
import { FOREIGN_PROG, HANGING_LEDGERS, LEDGER_FAULTS } from "../support/faults/fault-ledger-table.ts"
import { findProcessesOf } from "../support/faults/fault-leftovers.ts"
import { MACHINE_FAULTS } from "../support/faults/fault-machine-table.ts"
import { DAMAGES, STORED_FAULTS } from "../support/faults/fault-stored-table.ts"
import { clientFault, PROJECT_FAULTS } from "../support/faults/fault-table.ts"
import { TRUST_FAULTS } from "../support/faults/fault-trust-table.ts"
import { makeOwnFolder } from "../support/files/own-state.ts"
import { liveFiles, liveFolder, recordingWriter } from "../support/opencode/live-stream.ts"
import { runOpenCode } from "../support/opencode/opencode-run.ts"
import type { TaskProject } from "../support/opencode/task-project.ts"

const READ_EVERY_MS = 20

/** A fault of the live state; by default of its writer, of which there is one. */
const liveFault = (name: string, fault: Partial<Fault>): Fault => ({
  name,
  slots: ["writer"],
  needs: ["liveState"],
  ...fault,
})

/** Another program in place of the writer. */
const writerFault = (name: string, argv: (task: TaskProject) => readonly string[]): Fault =>
  liveFault(`the state writer ${name}`, {
    options: { environment: (task) => ({ BATON_STATE_WRITER: JSON.stringify(argv(task)) }) },
  })

const shell = (script: string) => ["/bin/sh", "-c", script]

const killWriters = async ({ project }: Scene): Promise<void> => {
  for (const line of await findProcessesOf(project))
    if (line.includes("stream.jsonl")) signalIfThere(Number.parseInt(line, 10), "SIGKILL")
}

const readAllTheTime = (scene: Scene): void => {
  const { directory } = scene.project
  const timer = setInterval(() => {
    try {
      for (const name of liveFiles(directory)) JSON.parse(readFileSync(join(liveFolder(directory), name), "utf8"))
    } catch (error) {
      // A writer that ends with its project may remove its file, and another fault the folder.
      if (error instanceof SyntaxError) scene.complain(`a reader saw half of a statefile: ${error.message}`)
    }
  }, READ_EVERY_MS)
  scene.onEnd(() => clearInterval(timer))
}

const allowLiveFolder = (mode: number) => (task: TaskProject) => {
  chmodSync(makeOwnFolder(task.project, "live"), mode)
}

const LIVE_STATE_FAULTS: readonly Fault[] = [
  writerFault("is not there", () => ["/nonexistent/writer"]),
  writerFault("exits at once", () => shell("exit 3")),
  writerFault("never reads", () => shell("exec sleep 10")),
  writerFault("talks on both streams", () => shell("while read -r line; do echo out; echo err >&2; done")),
  writerFault("will not end", () => shell("trap '' TERM HUP INT; cat >/dev/null; sleep 5")),
  liveFault("the state writer is killed", {
    when: "running",
    options: {
      environment: ({ project }) => ({ BATON_STATE_WRITER: recordingWriter(join(project.home, "stream.jsonl")) }),
    },
    arrange: async (scene, delayMs) => {
      await killWriters(scene)
      scene.follow(wait(delayMs).then(() => killWriters(scene)))
    },
  }),
  liveFault("a reader reads the statefile while it is written", {
    slots: ["reader"],
    when: "any",
    arrange: readAllTheTime,
  }),
  liveFault("the folder of the live state may not be written", {
    slots: ["writer", ".opencode/state"],
    when: "any",
    arrange: allowLiveFolder(0o555),
    lift: allowLiveFolder(0o755),
  }),
  {
    name: "a second OpenCode runs in the project",
    slots: ["companion"],
    // Two processes cannot create OpenCode's database at once.
    when: "running",
    arrange: ({ binary, project, environment, follow }) =>
      follow(runOpenCode(COMPANION_MESSAGE, { binary, project, environment })),
  },
]

/** A fault of a subagent, of the root agent's use of its tools, or of the policy. */
const passFault = (name: string, fault: Pick<Fault, "child" | "root" | "policy" | "needs">): Fault => ({
  name,
  slots: (["child", "root", "policy"] as const).filter((part) => fault[part] !== undefined),
  needs: ["pass"],
  ...fault,
})

/** Breaks a client call that a pass needs. */
const callFault = (call: string, how: string): Fault => ({ ...clientFault(call, how), needs: ["pass"] })

/** The fault that leads to each error of a pass. */
const FAULT_OF_ERROR: Record<ErrorCode, Fault> = {
  E001: passFault("work is passed to an unknown subagent", { root: "unknown subagent" }),
  E002: passFault("a subagent passes over too deep", { child: "deeper", policy: { defaults: { max_chain_depth: 1 } } }),
  E003: passFault("a subagent passes over to itself", { child: "cycle" }),
  E004: passFault("a session has used up its passes", {
    root: "one more pass",
    policy: { defaults: { max_passes_per_session: 1 } },
  }),
  E010: passFault("a subagent never answers", { child: "hang" }),
  E011: passFault("a subagent's model fails", { child: "crash" }),
  E020: callFault("session.get", "answers an error"),
  E021: passFault("a subagent returns what is no work output", { child: "wrong return" }),
  E022: passFault("a file changes while a pass holds it", { root: "conflict", needs: ["code"] }),
  E023: passFault("an unknown pass is applied", { root: "unknown pass", needs: ["code"] }),
  E024: passFault("a pass is applied twice", { root: "applied twice", needs: ["code"] }),
  E030: passFault("the policy cannot be used", { policy: '{ "defaults": { "timeout_ms": "soon" } ' }),
}

const PASS_FAULTS: readonly Fault[] = [
  ...Object.values(FAULT_OF_ERROR),
  passFault("a subagent's model fails after it changed files", { child: "crash late" }),
  passFault("a subagent ends without a return", { child: "prose" }),
  callFault("session.create", "rejects"),
  callFault("session.prompt", "answers an error"),
]

/** @param entry of a whole record, or the file's content */
const plantRecord = ({ project }: TaskProject, name: string, entry: object | string): void => {
  const isContent = typeof entry === "string" || Buffer.isBuffer(entry)
  const folder = makeOwnFolder(project, "outbox")
  const record = () => JSON.stringify({ version: 1, createdAt: "2026-01-01T00:00:00.000Z", entry })
  writeFileSync(join(folder, `${name}.json`), isContent ? entry : record())
}

const outboxFault = (name: string, parked: number, arrange?: NonNullable<Fault["arrange"]>): Fault => ({
  name: `the outbox holds ${name}`,
  // While the state is broken, no files can be added to it.
  slots: ["outbox", ".opencode/state"],
  parked,
  ...(arrange ? { arrange } : {}),
})

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
    plantRecord(task, "0000000000001-000000-aaaaaaaa", entry)
  }),
  {
    ...outboxFault("a handoff that finds no room", 1),
    // Before another fault can lock the ledger, which gets a task here.
    prepare: async (task) => {
      const specification = "x".repeat(FULL_DESCRIPTION_CHARACTERS)
      const taskID = await task.ledger.addTask({ title: "Full", specification, definitionOfDone: "none" })
      const entry = { kind: "handoff", taskID, sessionID: "ses_of_nobody", section: "y".repeat(5_000) }
      plantRecord(task, "0000000000002-000000-bbbbbbbb", entry)
    },
  },
  outboxFault("the lock of a process that has ended", 0, (task) => {
    const lock = join(makeOwnFolder(task.project, "outbox"), "lock")
    const at = Date.now() / 1000 - STALE_LOCK_SECONDS
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

const MANY = Array.from({ length: 30 }, (_, index) => `many/${index}.txt`)
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
  handoffFault("too much", ["big.txt", ...MANY], ({ project }) => {
    project.write("big.txt", "x\n".repeat(1_500_000))
    for (const path of MANY) project.write(path, "one\n")
  }),
]

const HUGE_CORRECTION = `${"This is what the log of the build says today. ".repeat(4_000)}\n\n${CORRECTION}`
const SECRET_CORRECTION = `No, use the key sk-ant-api03-${SECRET_TEXT}${"Ab1".repeat(30)}-AA instead of the old key in the client.`

const correctionFault = (name: string, text: string, isSecret: boolean): Fault => ({
  name: `a correction ${name}`,
  slots: ["correction"],
  needs: ["correction"],
  correction: { text, isSecret },
})

/** Faults of the outbox, of a handoff's files and of learnings, and the end of OpenCode itself. */
const RECORD_FAULTS: readonly Fault[] = [
  ...OUTBOX_FAULTS,
  ...HANDOFF_FAULTS,
  correctionFault("holds a secret", SECRET_CORRECTION, true),
  correctionFault("comes in a huge message", HUGE_CORRECTION, false),
  {
    name: "OpenCode is killed",
    slots: ["kill"],
    when: "running",
    kills: true,
    arrange: ({ killOpenCode }, delayMs) => void setTimeout(killOpenCode, delayMs),
  },
]

/** All faults of the storm, those of the tables first. A seed's plan depends on their order. */
export const CATALOGUE: readonly Fault[] = [
  ...PROJECT_FAULTS,
  clientFault("session.get", "hangs"),
  ...new Set([...LEDGER_FAULTS, ...HANGING_LEDGERS]),
  FOREIGN_PROG,
  ...MACHINE_FAULTS,
  ...STORED_FAULTS,
  ...LIVE_STATE_FAULTS,
  ...PASS_FAULTS,
  ...RECORD_FAULTS,
  ...CLAIM_FAULTS,
  ...CLAIM_STEPS,
  ...TRUST_FAULTS,
]

export const faultNamed = (name: string): Fault => {
  const found = CATALOGUE.find((fault) => fault.name === name)
  if (found === undefined) throw new Error(`the storm knows no fault '${name}'`)
  return found
}
