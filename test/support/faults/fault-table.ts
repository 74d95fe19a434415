import { execFileSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { TaskProject } from "../opencode/task-project.ts"
import type { TestProject } from "../opencode/test-project.ts"
import type { CompactionFault } from "./fault.ts"

/** Matches one log line that holds all the parts, in any order: versions of OpenCode order them differently. */
export const lineWith = (...parts: string[]): RegExp =>
  new RegExp(`^${parts.map((part) => `(?=.*(?:${part}))`).join("")}`, "m")

/** Root ignores file modes; without these two capabilities it does not. */
export const HELD_TO_MODES =
  process.getuid?.() === 0 ? ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] : []

/** Moves a file or folder of the project aside and puts something broken in its place. */
export const inPlaceOf = (path: string, breakIt: (path: string) => void): Pick<CompactionFault, "arrange" | "lift"> => {
  const aside = ({ project }: TaskProject) => join(project.home, `put-aside-${path.replaceAll("/", "-")}`)
  return {
    arrange: (task) => {
      const place = join(task.project.directory, path)
      if (existsSync(place)) renameSync(place, aside(task))
      breakIt(place)
    },
    lift: (task) => {
      const place = join(task.project.directory, path)
      rmSync(place, { recursive: true, force: true })
      if (existsSync(aside(task))) renameSync(aside(task), place)
    },
  }
}

const promptFault = (name: string, reason: string, breakIt: (path: string) => void): CompactionFault => ({
  name: `handoff.md ${name}`,
  ...inPlaceOf("prompts/handoff.md", breakIt),
  expectedLog: lineWith("handoff prompt unusable: built-in text used", "handoff\\.md", reason),
  when: "any",
})

const PROMPT_FAULTS: readonly CompactionFault[] = [
  promptFault("is missing", "it does not exist", () => {}),
  promptFault("is a folder", "it is a folder, not a file", (path) => mkdirSync(path)),
  promptFault("is a link to itself", "it cannot be read: ELOOP", (path) => symlinkSync(path, path)),
  promptFault("may not be read", "it cannot be read: EACCES", (path) => {
    writeFileSync(path, "Secret.\n", { mode: 0o000 })
  }),
  promptFault("is binary", "it is not UTF-8 text", (path) => writeFileSync(path, Buffer.from([0xff, 0xfe, 0, 0xc3]))),
  promptFault("has 10 MB", "it is larger than 65536 bytes", (path) => writeFileSync(path, "x".repeat(10_000_000))),
  promptFault("is empty", "it is empty", (path) => writeFileSync(path, "\n")),
  promptFault("is a named pipe", "it is not a regular file", (path) => execFileSync("mkfifo", [path])),
  {
    name: "worker.md is missing",
    ...inPlaceOf("prompts/worker.md", () => {}),
    expectedLog: lineWith("role prompt unusable: built-in protocol used", "it does not exist"),
    when: "any",
  },
]

/** Adds the plugin that breaks calls to the project's own. */
export const addFaultPlugin = ({ directory }: TestProject): void =>
  cpSync(join(import.meta.dirname, "fault-plugin.ts"), join(directory, ".opencode", "plugins", "a-fault.ts"))

/** Breaks one call of the client that all plugins share; see fault-plugin.ts. Several calls may be broken at once. */
export const breakClientCall = ({ project }: TaskProject, call: string, how: string): void =>
  writeFileSync(join(project.home, `client-fault ${call}`), how)

export const clientFault = (call: string, how: string, ...reason: string[]): CompactionFault => ({
  name: `${call} ${how}`,
  arrange: (task) => breakClientCall(task, call, how),
  lift: ({ project }) => rmSync(join(project.home, `client-fault ${call}`), { force: true }),
  ...(reason.length > 0 ? { expectedLog: lineWith(...reason) } : {}),
  isClientFault: true,
  isOf1: true,
  when: "any",
})

const UNKNOWN_SHAPE = "session\\.messages answered in an unknown shape: "

/** Must come first: todos are requested once and then updated by events. */
const TODO_FAULTS: readonly CompactionFault[] = [
  clientFault("session.todo", "hangs", "session\\.todo did not answer within 1000 ms"),
  clientFault("session.todo", "answers a page of HTML", "session\\.todo answered in an unknown shape"),
]

const CLIENT_FAULTS: readonly CompactionFault[] = [
  clientFault("session.messages", "answers an error", "session\\.messages failed: ", "ScriptedError"),
  clientFault("session.messages", "throws", "session\\.messages failed: Error: scripted throw"),
  clientFault("session.messages", "rejects", "session\\.messages failed: Error: scripted rejection"),
  clientFault("session.messages", "hangs", "session\\.messages did not answer within 1000 ms"),
  clientFault("session.messages", "answers nothing", `${UNKNOWN_SHAPE}undefined`),
  clientFault("session.messages", "answers a page of HTML", UNKNOWN_SHAPE, "doctype"),
  clientFault("session.messages", "answers objects without their fields", UNKNOWN_SHAPE, "info.*null"),
  clientFault("app.log", "throws"),
  clientFault("app.log", "rejects"),
  clientFault("app.log", "hangs"),
]

const allowStateFolder = (mode: number) => (task: TaskProject) => {
  const state = join(task.project.directory, ".opencode", "state")
  mkdirSync(state, { recursive: true })
  execFileSync("find", [state, "-type", "d", "-exec", "chmod", mode.toString(8), "{}", "+"])
}

export const RECORDED_DIRECTLY = "the outbox cannot be written: the record goes to the ledger directly"

const STATE_FAULTS: readonly CompactionFault[] = [
  {
    name: ".opencode/state is a file",
    ...inPlaceOf(".opencode/state", (path) => writeFileSync(path, "")),
    expectedLog: lineWith(RECORDED_DIRECTLY, "EEXIST|ENOTDIR"),
    when: "any",
    refuses: "disk",
  },
  {
    name: ".opencode/state may not be written",
    arrange: allowStateFolder(0o555),
    lift: allowStateFolder(0o755),
    expectedLog: lineWith(RECORDED_DIRECTLY, "EACCES"),
    when: "any",
    refuses: "disk",
  },
]

/** Faults that leave the ledger reachable, one after the other in one session. */
export const PROJECT_FAULTS: readonly CompactionFault[] = [
  ...TODO_FAULTS,
  ...PROMPT_FAULTS,
  ...STATE_FAULTS,
  ...CLIENT_FAULTS,
]
