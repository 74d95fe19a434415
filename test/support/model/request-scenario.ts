import { createSession, openModelProject, openServer } from "../opencode/model-project.ts"
import type { OpenCodeBinary } from "../opencode/opencode-binary.ts"
import { endInstance } from "../opencode/opencode-server.ts"
import type { SharedTask } from "../opencode/task-project.ts"
import type { ProjectOptions } from "../opencode/test-project.ts"
import { passOver, returns } from "./pass-over-script.ts"
import { comparableRequest, requestCharacters } from "./request-size.ts"
import { COMPACTING_STEP } from "./retention.ts"
import { type ModelRequest, newestOrder, newestWords, type Script } from "./scripted-model.ts"

/** The compared requests, in the order in which they are made. */
export const REQUESTS = {
  "no-task": "session without a task, first request",
  "no-task-compaction": "session without a task, compaction request",
  "no-task-after": "session without a task, right after a compaction",
  task: "session with a task, first request",
  "task-compaction": "session with a task, compaction request",
  "task-after": "session with a task, right after a compaction",
  "task-later": "session with a task, a later turn",
  handoff: "`/handoff`",
  "handed-over": "handed-over session, first request",
  "learning-fits": "session that a learning fits, first request",
  "learning-other": "session that no learning fits, first request",
  policy: "session with a pass-over policy, first request",
  child: "child session that work is passed over to, first request",
} as const

export type RequestName = keyof typeof REQUESTS
export const REQUEST_NAMES = Object.keys(REQUESTS) as RequestName[]

/** Features compared with plain OpenCode: a plugin file each, and the only requests that it may add to. */
export const ADDITIONS = {
  compaction: {
    name: "Compaction",
    plugin: "compaction-handoff.ts",
    adds: ["task", "task-compaction", "task-after", "task-later"],
  },
  handoff: { name: "Handoff", plugin: "handoff.ts", adds: ["handoff", "handed-over"] },
  "live-state": { name: "Live state", plugin: "live-state.ts", adds: [] },
  learning: { name: "Learning", plugin: "session-learning.ts", adds: ["learning-fits"] },
  "pass-over": { name: "Pass over", plugin: "pass-over.ts", adds: ["policy", "child"] },
} as const satisfies Record<string, { name: string; plugin: string; adds: readonly RequestName[] }>

export type FeatureName = keyof typeof ADDITIONS
export const FEATURE_NAMES = Object.keys(ADDITIONS) as FeatureName[]

export const mayAdd = (feature: FeatureName, request: RequestName): boolean =>
  (ADDITIONS[feature].adds as readonly RequestName[]).includes(request)

/** A request without random parts, and the number of its characters that the model reads. */
export type RecordedRequest = { text: string; characters: number }
export type RecordedRequests = Record<RequestName, RecordedRequest>

const OBJECTIVE = "REVIEW-THIS please"

/** Follows the newest message, with Baton's tools if they are offered and with OpenCode's own otherwise. */
const script: Script = (request) => {
  const { kind, tools } = request
  if (kind === "compaction") return { text: "Some work was done and it went fine." }
  const last = newestOrder(request)
  if (last.includes("[tool]")) return { text: "Done." }
  if (last.includes("COMPACT-NOW")) return COMPACTING_STEP
  if (last.includes("Hand this work over"))
    return { tool: "handoff_session", input: { prompt: "Go on with it.", files: ["README.md"] } }
  if (last.includes(OBJECTIVE) && tools.includes("pass_over_return")) return returns()
  if (last.includes("DELEGATE") && tools.includes("pass_over"))
    return passOver({ subagent: "general", objective: OBJECTIVE, reason: "review" })
  if (last.includes("DELEGATE"))
    return { tool: "task", input: { description: "Review", prompt: OBJECTIVE, subagent_type: "general" } }
  return { text: "I wrote it with spaces." }
}

/** A project on a server and a task in its ledger. A place from `openSharedTask` is closed by its test. */
type Place = Pick<SharedTask, "client" | "model" | "project" | "taskID" | "restart"> & { end?(): Promise<void> }
type Speaker = Pick<Place, "client" | "model">
type Open = (
  binary: OpenCodeBinary,
  script: Script,
  options: Pick<Partial<ProjectOptions>, "bundle" | "plugins">,
) => Promise<Place>

const openOwnServer: Open = async (binary, script, options) => {
  const opened = await openModelProject(binary, script, options)
  const taskID = await opened.addTask()
  const { client, stop } = await openServer(opened)
  const end = () => stop().then(opened.close)
  return { ...opened, client, taskID, restart: () => endInstance(client), end }
}

/** The first request of a kind caused by `act`. */
const requestsOf = async ({ model }: Speaker, act: () => Promise<{ error?: unknown }>) => {
  const before = model.requests.length
  const { error } = await act()
  if (error) throw new Error(`OpenCode refused: ${JSON.stringify(error).slice(0, 300)}`)
  const made = model.requests.slice(before)
  return (kind: ModelRequest["kind"], at = 0): ModelRequest => {
    const found = made.filter((request) => request.kind === kind).at(at)
    if (found) return found
    throw new Error(`expected a ${kind} request, received ${made.map((request) => request.kind).join(", ") || "none"}`)
  }
}

const speak = (speaker: Speaker, id: string, text: string) =>
  requestsOf(speaker, () => speaker.client.session.prompt({ path: { id }, body: { parts: [{ type: "text", text }] } }))

type Made = Partial<Record<RequestName, ModelRequest>>

/** A session that begins with this message and is compacted once. */
const compactOnce = async (speaker: Speaker, message: string) => {
  const id = await createSession(speaker)
  const first = await speak(speaker, id, message)
  return { id, first, compacted: await speak(speaker, id, "COMPACT-NOW") }
}

const compactSessions = async (speaker: Speaker, taskID: string): Promise<Made> => {
  const plain = await compactOnce(speaker, "Say hello.")
  const { id, first, compacted } = await compactOnce(speaker, `# Worker\n\nTask: ${taskID}\n\nNever touch the lexer.\n`)
  const later = await speak(speaker, id, "What is next?")
  return {
    "no-task": plain.first("turn"),
    "no-task-compaction": plain.compacted("compaction"),
    "no-task-after": plain.compacted("turn", -1),
    task: first("turn"),
    "task-compaction": compacted("compaction"),
    "task-after": compacted("turn", -1),
    "task-later": later("turn"),
  }
}

const handOver = async (speaker: Speaker, hasCommand: boolean): Promise<Made> => {
  const id = await createSession(speaker)
  await speak(speaker, id, "Say hello.")
  const body = { command: "handoff", arguments: "finish the parser" }
  const asked = hasCommand
    ? await requestsOf(speaker, () => speaker.client.session.command({ path: { id }, body }))
    : await speak(speaker, id, body.arguments)
  const stored = /stored in the new session (ses_\w+)/.exec(asked("turn", -1).conversation)?.[1]
  if (hasCommand && stored === undefined) throw new Error("the handoff stored no session")
  const begun = await speak(speaker, stored ?? (await createSession(speaker)), "Go on.")
  return { handoff: asked("turn"), "handed-over": begun("turn") }
}

const learn = async (speaker: Speaker): Promise<Made> => {
  const corrected = await createSession(speaker)
  await speak(speaker, corrected, "Write the formatter.")
  await speak(speaker, corrected, "No, use tabs instead of spaces in the formatter.")
  const fits = await speak(speaker, await createSession(speaker), "Make the formatter ready for CSS.")
  const other = await speak(speaker, await createSession(speaker), "What time is it?")
  return { "learning-fits": fits("turn"), "learning-other": other("turn") }
}

const passWork = async (speaker: Speaker): Promise<Made> => {
  const first = await speak(speaker, await createSession(speaker), "Say hello.")
  await speak(speaker, await createSession(speaker), "DELEGATE the review.")
  const child = speaker.model.received("turn").find((request) => newestWords(request).includes(OBJECTIVE))
  if (!child) throw new Error("no child session asked the model")
  return { policy: first("turn"), child }
}

/**
 * Runs the same sessions with some of the bundle's plugins, or none, by default in an `opencode serve` of its own.
 *
 * @returns the requests that the model received, one of each name
 */
export const recordRequests = async (
  binary: OpenCodeBinary,
  features: readonly FeatureName[],
  open = openOwnServer,
): Promise<RecordedRequests> => {
  const bundle = features.length === 0 ? "none" : "project"
  const plugins = features.map((name) => ADDITIONS[name].plugin)
  const place = await open(binary, script, { bundle, plugins })
  try {
    const made = {
      ...(await compactSessions(place, place.taskID)),
      ...(await handOver(place, features.includes("handoff"))),
      ...(await learn(place)),
    }
    place.project.write(".opencode/pass-over.json", '{"defaults":{"auto_return":true}}\n')
    await place.restart()
    Object.assign(made, await passWork(place))
    const recorded = REQUEST_NAMES.map((name) => {
      const request = made[name]
      if (!request) throw new Error(`the scenario made no request ${name}`)
      const text = comparableRequest(request, place.project)
      return [name, { text, characters: requestCharacters({ body: JSON.parse(text) }) }]
    })
    return Object.fromEntries(recorded) as RecordedRequests
  } finally {
    await place.end?.()
  }
}
