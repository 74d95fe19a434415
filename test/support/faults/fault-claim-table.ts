import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { signalIfThere } from "../../../.opencode/baton/host/process.ts"
import { databaseOf } from "../ledger/ledger-process.ts"
import { runSql } from "../ledger/ledger-rows.ts"
import { NEWEST } from "../opencode/opencode-binary.ts"
import { runOpenCode } from "../opencode/opencode-run.ts"
import { eventually } from "../opencode/opencode-server.ts"
import type { TaskProject } from "../opencode/task-project.ts"
import type { CompactionFault, Fault } from "./fault.ts"
import { lineWith } from "./fault-table.ts"

/** Begins the message of the project's second OpenCode; the scripted agent answers it with a word. */
export const COMPANION_MESSAGE = "COMPANION-OF-THE-STORM: what time is it?"

/** `opencode run` puts a line break before a message from its standard input. */
export const isCompanion = (conversation: string): boolean =>
  conversation.replace(/^\[user\]\s*/, "").startsWith(COMPANION_MESSAGE)

const changeLedger = ({ project }: TaskProject, ...queries: string[]): void =>
  void runSql(databaseOf(project.home), queries)

const REMOVE_CLAIMS = "DROP TABLE IF EXISTS baton_claims"

const LOCK = `const { Database } = require("bun:sqlite")
const database = new Database(process.env.DATABASE)
database.run("PRAGMA busy_timeout = 5000")
database.run("BEGIN IMMEDIATE")
console.log("locked")
process.stdin.on("end", () => process.exit()).resume()`

const lockers = new Map<string, ChildProcess>()

/** Keeps the ledger from being written, but not from being read; until it is unlocked, or this process ends. */
export const lockLedger = async ({ project }: TaskProject): Promise<void> => {
  const env = { PATH: "/usr/bin:/bin", BUN_BE_BUN: "1", DATABASE: databaseOf(project.home) }
  const locker = spawn(NEWEST.path, ["-e", LOCK], { env, stdio: ["pipe", "pipe", "inherit"] })
  lockers.set(project.home, locker)
  await once(locker.stdout, "data")
}

export const unlockLedger = async ({ project }: TaskProject): Promise<void> => {
  const locker = lockers.get(project.home)
  if (locker === undefined || !lockers.delete(project.home)) return
  const ended = once(locker, "exit")
  locker.kill("SIGKILL")
  await ended
}

const claimAndDie = async ({ ledger, taskID }: TaskProject): Promise<void> => {
  const holder = spawn("sleep", ["600"])
  const ended = once(holder, "exit")
  await ledger.prog("claim", taskID, "--session", "ses_killed", "--pid", String(holder.pid))
  holder.kill("SIGKILL")
  await ended
  if ((await ledger.prog("claims")) !== "No claims") throw new Error("a claim outlives its killed holder")
}

/** Faults of claims, each for a whole run. */
export const CLAIM_FAULTS: readonly CompactionFault[] = [
  {
    name: "the claims' table is damaged",
    slots: ["claims"],
    arrange: (task) => changeLedger(task, REMOVE_CLAIMS, "CREATE TABLE baton_claims (damaged TEXT)"),
    lift: (task) => changeLedger(task, REMOVE_CLAIMS),
    expectedLog: lineWith("the task is not claimed", "no such column"),
  },
  {
    name: "the claims' database is locked by another program",
    slots: ["claims", "prog"],
    arrange: lockLedger,
    lift: unlockLedger,
    expectedLog: lineWith("the task is not claimed", "did not end within|database is locked"),
    record: "outbox",
    refuses: "ledger",
  },
  {
    name: "the claims' last holder was killed",
    slots: ["claims"],
    arrange: claimAndDie,
    expectedLog: lineWith("the task is claimed"),
  },
  {
    name: "the claims' clock was ahead and is set back",
    slots: ["claims"],
    arrange: async (task) => {
      await task.ledger.prog("claim", task.taskID, "--as", "ada")
      changeLedger(task, "UPDATE baton_claims SET lease_until = '2099-01-01T00:00:00.000Z'")
    },
    expectedLog: lineWith("the task is claimed"),
  },
]

/** Claims by others at random moments, for the storm. */
export const CLAIM_STEPS: readonly Fault[] = [
  {
    name: "the claims' table is removed",
    slots: ["claims"],
    when: "running",
    arrange: (scene) => changeLedger(scene, REMOVE_CLAIMS),
  },
  {
    name: "two others claim the task at once",
    slots: ["claims"],
    when: "any",
    arrange: async ({ ledger, taskID, complain }) => {
      const claims = await Promise.allSettled(["one", "two"].map((name) => ledger.prog("claim", taskID, "--as", name)))
      if (claims.every(({ status }) => status === "fulfilled")) complain("claimed: the task is held by two")
    },
    // Also a session's claim, and there may be none.
    lift: async ({ ledger, taskID }) => void (await Promise.allSettled([ledger.prog("release", taskID)])),
  },
  {
    name: "a second OpenCode works on the task and is killed",
    slots: ["companion"],
    when: "running",
    arrange: ({ binary, project, environment, follow, model, taskID }, delayMs) => {
      const isAtWork = () =>
        model.requests.some(({ conversation }) => isCompanion(conversation) && conversation.includes("[tool]")) ||
        undefined
      const kill = (pid: number) => setTimeout(() => signalIfThere(pid, "SIGKILL"), delayMs)
      const onStart = (pid: number) =>
        void eventually("its tool", isAtWork).then(
          () => kill(pid),
          () => kill(pid),
        )
      const message = `${COMPANION_MESSAGE}\n\nTask: ${taskID}`
      follow(runOpenCode(message, { binary, project, environment: { ...environment }, onStart }))
    },
  },
]
