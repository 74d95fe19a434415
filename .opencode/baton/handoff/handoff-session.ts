import { cutText, type Log } from "../host/log.ts"
import { findMessageTarget, type Sessions } from "../host/sessions.ts"
import { type Role, unquoteArgument } from "../task/parse.ts"
import type { TaskBinding } from "../task/registry.ts"
import type { Delivered, Delivery } from "./delivery.ts"
import { renderDraft } from "./draft.ts"
import { type HandoffFacts, renderHandoffFacts } from "./handoff-facts.ts"
import { type HandoffRecord, type HandoffRecords, handoffID } from "./handoff-record.ts"
import { type LoadedFiles, renderLeftOut } from "./load-files.ts"
import { type FileReference, parseReferences, renderReference } from "./reference.ts"

export type HandoffRequest = {
  readonly sessionID: string
  readonly prompt: string
  /** As the model wrote them: paths, some with an `@` or a line range. */
  readonly files: readonly string[]
  /** What the user typed behind /handoff; empty for none. */
  readonly goal: string
}

export type HandoffSessionDeps = {
  gatherFacts: (sessionID: string) => Promise<HandoffFacts>
  findTask: (sessionID: string) => Promise<TaskBinding | undefined>
  loadFiles: (references: readonly FileReference[]) => Promise<LoadedFiles>
  deliver: Delivery
  sessions: Pick<Sessions, "messages">
  records: HandoffRecords
  log: Log
  now: () => Date
  /** A few random lower-case letters and digits. */
  random: () => string
}

const GOAL_CHARACTERS = 200
const HEADINGS: Readonly<Record<Role, string>> = { worker: "# Worker", planner: "# Planner" }

const RANGE = /(?::\d+(?:-\d+)?|#L\d+(?:-L?\d+)?)$/

/** A path as the model gives it may carry the mark and the range of a reference; anything else is a plain path. */
const toReference = (given: string): FileReference => {
  const path = given.trim()
  if (path.startsWith("@")) return parseReferences(path)[0] ?? { path }
  const range = RANGE.exec(path)?.[0] ?? ""
  const [parsed] = parseReferences(`${renderReference({ path: path.slice(0, path.length - range.length) })}${range}`)
  return parsed ?? { path }
}

const firstLine = (text: string): string =>
  text
    .split(/\r\n|\r|\n/)
    .map((line) => line.replace(/^[\s#>*-]+/, "").trim())
    .find((line) => line !== "") ?? "go on"

/** @param isKept whether the record is on disk @throws Error for a draft that was not delivered, with where it is now */
const describeDelivery = (delivered: Delivered, record: HandoffRecord, isKept: boolean): string => {
  switch (delivered.kind) {
    case "draft":
      return [
        "Handoff ready: the draft is in the prompt of a new session. The user reviews, edits and sends it.",
        "Do nothing more in this session.",
      ].join("\n")
    case "stored":
      return [
        `Handoff stored in the new session ${delivered.sessionID} (“${delivered.title}”). Nothing runs in it yet.`,
        `Continue it with: opencode run --session ${delivered.sessionID} "Go on."`,
        "or open it in the TUI's session list. Do nothing more in this session.",
        "",
        "The draft:",
        "",
        record.draft,
      ].join("\n")
    case "failed":
      throw new Error(
        [
          `The handoff was not delivered: ${delivered.reason}.`,
          ...(delivered.sessionID === undefined
            ? []
            : [`The session ${delivered.sessionID} was created and may be empty.`]),
          isKept
            ? `The draft is kept in .opencode/state/handoffs/ (${record.id}).`
            : "The draft could not be kept on disk either.",
          "Tell the user this; the draft can be pasted into a new session as it is.",
          ...(isKept ? [] : [`The draft:\n\n${record.draft}`]),
        ].join(" "),
      )
  }
}

/** The tool handoff_session: makes the draft, brings it to a new session, and keeps a record of it. */
export const createHandoffSession = (deps: HandoffSessionDeps) => {
  const { gatherFacts, findTask, loadFiles, deliver, sessions, records, log, now, random } = deps

  /** @throws Error with what was received and what to do, when there is nothing to hand over or nowhere to put it */
  return async ({ sessionID, prompt, files, goal }: HandoffRequest): Promise<string> => {
    if (prompt.trim() === "")
      throw new Error("`prompt` is empty: write what the next session has to know, and call again")
    const [facts, binding, loaded, target] = await Promise.all([
      gatherFacts(sessionID),
      findTask(sessionID),
      loadFiles(files.filter((file) => file.trim() !== "").map(toReference)),
      findMessageTarget(sessions, sessionID),
    ])
    const draft = renderDraft({
      sessionID,
      files: loaded.references,
      prompt,
      ...(binding ? { task: { taskID: binding.taskID, heading: HEADINGS[binding.role] } } : {}),
      facts: renderHandoffFacts(facts),
    })
    const at = now()
    const record: HandoffRecord = {
      version: 1,
      id: handoffID(at, random()),
      createdAt: at.toISOString(),
      from: sessionID,
      goal: cutText(unquoteArgument(goal).trim() || firstLine(prompt), GOAL_CHARACTERS),
      draft,
      files: loaded.references.map(({ path }) => path),
      leftOut: loaded.leftOut,
      taskID: binding?.taskID,
      arrivals: [],
    }
    const isKept = await records.write(record)
    const delivered = await deliver({ text: draft, goal: record.goal, target })
    log.info("handoff made", { sessionID, handoff: record.id, delivered: delivered.kind, files: record.files.length })
    const answer = describeDelivery(delivered, record, isKept)
    if (loaded.leftOut.length === 0) return answer
    return `${answer}\n\nLeft out of the files:\n${renderLeftOut(loaded.leftOut)}`
  }
}
