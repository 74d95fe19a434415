import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, afterEach, inject } from "vitest"
import { REPLAY } from "../effort.ts"
import { TASK } from "../ledger/test-ledger.ts"
import type { Script } from "../model/scripted-model.ts"
import { IS_NIGHT } from "./ends.ts"
import {
  BRIEF,
  createSession,
  MODEL,
  type ModelProject,
  openModelProject,
  speak,
  workerMessage,
} from "./model-project.ts"
import { NEWEST, type OpenCodeBinary, QUICK_START, REPOSITORY } from "./opencode-binary.ts"
import { connect, endInstance, eventually, type TestServer } from "./opencode-server.ts"
import type { ProjectOptions, TestProject } from "./test-project.ts"

export { BRIEF, MODEL, TASK }

/** A project with one task in its ledger and a scripted model; `message` is a worker's first message on it. */
export type TaskProject = ModelProject & { taskID: string; message: string }

/** Sources of a failed test's report. */
type Subject = Pick<ModelProject, "binary" | "model" | "project" | "close">

const MOST_REQUESTS = 5

const readLog = (project: TestProject): string => {
  try {
    return project.batonLog().join("\n")
  } catch (error) {
    return `OpenCode has no log: ${String(error)}`
  }
}

/** Writes reports of a failed test to .cache/failures/NAME/: OpenCode's version, its last requests, Baton's log lines. */
const keepFailure = (name: string, subjects: readonly Subject[]): void => {
  const folder = join(REPOSITORY, ".cache", "failures", name.replaceAll(/[^\w.-]+/g, "-").slice(0, 150))
  rmSync(folder, { recursive: true, force: true })
  for (const [index, { binary, model, project }] of subjects.entries()) {
    const place = join(folder, String(index + 1))
    const kept = process.env.BATON_KEEP_PROJECTS ? project.directory : "removed; BATON_KEEP_PROJECTS=1 keeps it"
    const requests = model.requests.slice(-MOST_REQUESTS).map(({ kind, index, body }) => ({ kind, index, body }))
    mkdirSync(place, { recursive: true })
    writeFileSync(join(place, "about.txt"), `${name}\nOpenCode ${binary.version}\nproject: ${kept}\n${REPLAY}\n`)
    writeFileSync(join(place, "requests.json"), JSON.stringify(requests, null, 2))
    writeFileSync(join(place, "baton.log"), readLog(project))
  }
}

const opened: Subject[] = []
/** The newest test's projects: a block may open its projects once for all of its tests. */
let lastOpened: readonly Subject[] = []
const running: (() => Promise<void>)[] = []

const closeOpened = async (): Promise<void> => {
  for (const end of running.splice(0)) await end()
  for (const { close } of opened.splice(0)) await close()
}

let closes: "after each test" | "after all" | "itself" = "after each test"

/** Called at the top of a test file whose tests share projects, or that closes them itself. */
export const closeTaskProjects = (when: typeof closes = "after each test"): void => {
  closes = when
}

/** Ends instances, closes models and removes projects; registered for every test file by set-up-e2e.ts. */
export const closeTaskProjectsAfterTests = (): void => {
  // The files of a worker share its modules.
  closes = "after each test"
  afterEach(async ({ task }) => {
    if (opened.length > 0) lastOpened = [...opened]
    if (task.result?.state === "fail") keepFailure(`${task.file.name} ${task.fullTestName}`, lastOpened)
    if (closes === "after each test") await closeOpened()
  })
  afterAll(async () => {
    if (closes === "itself") opened.splice(0)
    else await closeOpened()
  })
}

/** @param script is first called when OpenCode runs, so it may use the returned value */
export const openTaskProject = async (
  binary: OpenCodeBinary,
  script: Script,
  options: Partial<ProjectOptions> = {},
): Promise<TaskProject> => {
  const environment = { ...QUICK_START, ...options.environment }
  const project = await openModelProject(binary, script, { ...options, environment })
  opened.push(project)
  const taskID = await project.addTask()
  return { ...project, taskID, message: workerMessage(taskID) }
}

/** An `opencode serve` that many tests use at once, each in its own folder; see test/e2e/global-setup.ts. */
export type SharedServer = { version: string; url: string; pid: number; home: string }

/** The server of one version; throws outside the e2e project, which starts them. */
export const sharedServer = ({ version }: OpenCodeBinary): SharedServer => {
  const found = inject("sharedServers").find((server) => server.version === version)
  if (!found) throw new Error(`no shared OpenCode ${version} runs: it is started for the tests in test/e2e`)
  return found
}

/** A task project whose sessions run in the shared server of its version. */
export type SharedTask = Omit<TaskProject, "run" | "runWell"> & {
  client: TestServer["client"]
  /** Sends a message to a new session or to this one. @returns the session's id; fails when OpenCode or the model does */
  say(text: string, session?: string): Promise<string>
  /** Ends the project's instance: the next message sees the state of a new process. */
  restart(): Promise<void>
  /** Waits until the ledger has this many messages of a task, by default the project's. @returns its log */
  records(count: number, taskID?: string): Promise<string[]>
  /** Waits for the first of Baton's lines in OpenCode's log that holds this text. */
  logged(part: string): Promise<string>
}

/**
 * Settings by day of tests that need no snapshots: on the newest one at each step is up to half of OpenCode's work, and tells Baton
 * only what a shell changed. 1.2.15 takes little time for them.
 */
export const lightConfig = ({ version }: OpenCodeBinary) => ({ snapshot: IS_NIGHT || version !== NEWEST.version })

/** Deadline and interval of `eventually` for the ledger: each check starts a program. */
export const LEDGER_WAIT_MS = [20_000, 250] as const
let sharedProjects = 0

/** Waits, while OpenCode runs, until the ledger has this many messages of a task, by default the project's. @returns its log */
export const awaitRecords = (
  { ledger, taskID }: Pick<TaskProject, "ledger" | "taskID">,
  count: number,
  id = taskID,
): Promise<string[]> => {
  const enough = async () => {
    const messages = await ledger.messages(id)
    return messages.length < count ? undefined : messages
  }
  return eventually(`record ${count} of ${id}`, enough, ...LEDGER_WAIT_MS)
}

/**
 * Opens a project in the shared server: its own folder, model and task, without a process.
 *
 * @param script is first called at the first message to OpenCode, so it may use the returned value
 */
export const openSharedTask = async (
  binary: OpenCodeBinary,
  script: Script,
  options: Partial<Omit<ProjectOptions, "environment" | "home">> = {},
): Promise<SharedTask> => {
  const { url, home } = sharedServer(binary)
  // Learnings and passes are filed under the folder's name.
  const folder = `project-${process.pid}-${++sharedProjects}`
  const config = { ...lightConfig(binary), ...options.config }
  const { run: _, runWell: __, ...task } = await openTaskProject(binary, script, { folder, ...options, config, home })
  const client = connect(binary, url, task.project.directory)
  // Ends the project's instance, as if its OpenCode had ended.
  const restart = () => endInstance(client)
  const sessions = new Set<string>([task.project.directory])
  const batonLog = () => task.project.batonLog().filter((line) => [...sessions].some((part) => line.includes(part)))
  const project = { ...task.project, batonLog }
  running.push(restart)
  opened[opened.findIndex(({ model }) => model === task.model)] = { ...task, project }
  return {
    ...task,
    project,
    client,
    say: (text, session) => {
      const answered = (async () => {
        const id = session ?? (await createSession({ client }))
        sessions.add(id)
        await speak({ client }, id, text)
        return id
      })()
      // A test may wait for something else first.
      answered.catch(() => {})
      return answered
    },
    restart,
    records: (count, id) => awaitRecords(task, count, id),
    logged: (part) => eventually(`'${part}' in the log`, () => batonLog().find((line) => line.includes(part))),
  }
}

/** The newest session that OpenCode's log names. */
export const newestSessionID = ({ project }: TaskProject): string => {
  const found = project
    .log()
    .match(/\bses_[A-Za-z0-9]{20,}/g)
    ?.at(-1)
  if (!found) throw new Error("OpenCode's log names no session")
  return found
}
