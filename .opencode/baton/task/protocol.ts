/**
 * The role's compressed protocol: the section of a role prompt that goes into the task block, so that an agent still
 * knows how to work after a compaction. It is read from the prompt so that there is no second copy to drift.
 */
import type { Role } from "./role.ts"
import { splitLines } from "./user-text.ts"

/** Markers are whole lines, so that a sentence may name them. */
const OPENING_MARKER = /^<!--[ \t]*baton:protocol[ \t]*-->$/
const CLOSING_MARKER = /^<!--[ \t]*\/baton:protocol[ \t]*-->$/

const TASK_ID_PLACEHOLDER = /\{\{[ \t]*task_id[ \t]*\}\}/g

/** Puts the task's id where a prompt says `{{task_id}}`; nothing else in the text changes. */
export const fillTaskID = (text: string, taskID: string): string => text.replace(TASK_ID_PLACEHOLDER, () => taskID)

/**
 * The text between `<!-- baton:protocol -->` and `<!-- /baton:protocol -->`, each on a line of its own, trimmed, with
 * `{{task_id}}` filled in and LF line ends.
 *
 * @param markdown a role prompt (prompts/worker.md or planner.md)
 * @returns undefined when a marker is missing or the section is empty: use `builtInProtocol`. Of two openings before
 *   one closing the later counts, since the earlier was never closed; of two sections the first counts
 */
export const extractProtocol = (markdown: string, { taskID }: { taskID: string }): string | undefined => {
  let section: string[] | undefined
  for (const line of splitLines(markdown)) {
    const trimmed = line.trim()
    if (OPENING_MARKER.test(trimmed)) {
      section = []
    } else if (section !== undefined && CLOSING_MARKER.test(trimmed)) {
      const text = section.join("\n").trim()
      return text === "" ? undefined : fillTaskID(text, taskID)
    } else {
      section?.push(line)
    }
  }
  return undefined
}

const BUILT_IN: Record<Role, string> = {
  worker: `States: orient → feedback loop → implement → verify → review → fix → land. Log each change of state.
Checkpoint: commit what works, then \`prog log {{task_id}} "Checkpoint: …; next: …"\`.
Stuck: the same failure three times. Stop, log what is ruled out, go back one state. Still stuck: \`prog log {{task_id}} "Blocked: reason"\` and stop.
After a compaction: the summary is already recorded. \`prog show {{task_id}}\`, \`git status\`, then go on in the logged state.`,
  planner: `States: orient → identify gaps → write tasks → verify completeness. Log each change of state. Write no product code.
Checkpoint: \`prog log {{task_id}} "Checkpoint: tasks written; gaps left"\`.
Stuck: the same question open after three looks. Log it. If only a person can answer: \`prog log {{task_id}} "Blocked: question"\` and stop.
After a compaction: the summary is already recorded. \`prog show {{task_id}}\`, list the tasks that exist, then go on in the logged state.`,
}

/** The short protocol for a role whose prompt is missing or has no usable section. */
export const builtInProtocol = (role: Role, { taskID }: { taskID: string }): string =>
  fillTaskID(BUILT_IN[role], taskID)
