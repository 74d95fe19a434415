import { basename, dirname, join, resolve } from "node:path"
import { errorCode, type Log } from "../host/log.ts"
import { splitLines } from "../host/messages.ts"
import { bundleRoot, hasBundle } from "../host/project.ts"
import { sharedMap } from "../host/shared.ts"
import type { Notices } from "../host/tui.ts"
import { RefusedFile, readProjectConfig } from "../host/untrusted.ts"
import type { Role } from "./parse.ts"

export const PROMPT_NAMES = ["handoff", "handoff-command", "worker", "planner"] as const

export type PromptName = (typeof PROMPT_NAMES)[number]

/** Paths are relative to the project, with slashes; absolute for a prompt outside of it. */
export type PromptFile =
  /** `foreign` is the project's own file of that name in the folder that comes first. */
  | { readonly kind: "text"; readonly path: string; readonly text: string; readonly foreign?: string }
  /** A file of the project: it has no contract comment, or `isLate`: none that was there when this process first saw the file. */
  | { readonly kind: "foreign"; readonly path: string; readonly isLate?: true }
  /** `reason` is a clause for the user: what was found and what was expected. */
  | { readonly kind: "unusable"; readonly path: string; readonly reason: string }

export type PromptFiles = {
  /** Reads the file at each call, so that an edit takes effect at the next compaction. Never throws. */
  read(name: PromptName): PromptFile
}

/** A larger file is taken for a mistake. */
export const PROMPT_LIMIT_BYTES = 65_536

/** The folders of prompts, in search order. */
const FOLDERS = ["prompts", ".opencode/prompts"] as const

const CONTRACT_COMMENT = /^<!--[ \t]*baton:/m
/** Marks the file as Baton's; the model does not need it. */
const HANDOFF_COMMENT_LINES = /^<!--[ \t]*baton:handoff\b.*-->[ \t]*(?:\n|$)/gm

const ABSENT = "it does not exist"

class UnusablePrompt extends Error {
  override readonly name = "UnusablePrompt"
}

/** The decoder drops a byte order mark. All line ends become LF. */
const decodePrompt = (bytes: Uint8Array): string => {
  let text: string
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new UnusablePrompt("it is not UTF-8 text", { cause })
  }
  if (text.includes("\0")) throw new UnusablePrompt("it holds NUL bytes, so it is not text")
  return text.replace(/\r\n?/g, "\n")
}

const requireWords = (text: string): string => {
  if (text.trim() === "") throw new UnusablePrompt("it is empty")
  return text
}

/** Tells Baton's prompt from a file of the project with the same name. */
export const hasContractComment = (text: string): boolean => CONTRACT_COMMENT.test(text)

const judge = (name: PromptName, path: string, bytes: Uint8Array): PromptFile => {
  const text = requireWords(decodePrompt(bytes))
  if (!hasContractComment(text)) return { kind: "foreign", path }
  const sent = name.startsWith("handoff") ? requireWords(text.replace(HANDOFF_COMMENT_LINES, "")) : text
  return { kind: "text", path, text: sent }
}

const describeReason = (error: unknown): string => {
  if (error instanceof UnusablePrompt || error instanceof RefusedFile) return error.message
  const code = errorCode(error)
  return code === "ENOENT" ? ABSENT : `it cannot be read: ${code ?? String(error)}`
}

const refuse = (path: string, error: unknown): PromptFile => ({
  kind: "unusable",
  path,
  reason: describeReason(error),
})

/** Tells a file that was meant to be used from one that is not there. */
const isBroken = (file: PromptFile): boolean => file.kind === "unusable" && file.reason !== ABSENT

/** Says why a built-in text stands in for a prompt file. */
export const tellUnused = (
  { notices, log }: { notices: Notices; log: Log },
  file: Exclude<PromptFile, { kind: "text" }>,
  { prompt, text, ...about }: { prompt: string; text: string; sessionID?: string },
): void => {
  const { path } = file
  if (file.kind === "foreign") {
    const why = file.isLate ? "its contract comment counts after a restart of OpenCode" : "no contract comment"
    log.info(`${path} is the project's own (${why}): built-in ${text} used`, about)
    return
  }
  const { reason } = file
  log.warn(`${prompt} prompt unusable: built-in ${text} used`, { ...about, path, reason })
  if (reason === ABSENT) return
  notices({ key: `broken ${path}`, title: "built-in prompt used", message: `${path}: ${reason}`, isProblem: true })
}

/** Selects which of two files without a prompt of Baton's to report: a broken one, then one of the project. */
const worthTelling = (first: PromptFile, second: PromptFile): PromptFile => {
  const files = [first, second]
  return files.find(isBroken) ?? files.find(({ kind }) => kind === "foreign") ?? first
}

const choose = (first: PromptFile, second: PromptFile): PromptFile => {
  if (second.kind !== "text") return worthTelling(first, second)
  return first.kind === "foreign" ? { ...second, foreign: first.path } : second
}

/**
 * Absolute paths of files that this process saw as the project's own. An agent may edit such a file unasked, so a contract comment that
 * it gets counts only after a restart, when a person has had the time to see it.
 */
const projectsOwn = sharedMap<true>("projects-own-prompts")

/**
 * Creates the reader of the prompts that a user may edit: in the project's folder `prompts`, or in `.opencode/prompts` if the
 * project has its own files in the first.
 *
 * A file is read up to `PROMPT_LIMIT_BYTES`. A link of the user's own is followed, so that prompts can be shared between
 * projects.
 *
 * @param root absolute path of the folder that holds `.opencode` and `prompts`
 * @param shared folder of the prompts for a project that has none, where one copy of the bundle serves many projects
 */
export const createPromptFiles = ({ root, shared }: { root: string; shared?: string | undefined }): PromptFiles => {
  const [first, second] = FOLDERS
  const readAt = (folder: string, name: PromptName): PromptFile => {
    const path = `${folder}/${name}.md`
    const key = resolve(root, path)
    try {
      const file = judge(name, path, readProjectConfig(root, path, { maxBytes: PROMPT_LIMIT_BYTES }))
      if (file.kind === "foreign") projectsOwn.set(key, true)
      return file.kind === "text" && projectsOwn.has(key) ? { kind: "foreign", path, isLate: true } : file
    } catch (error) {
      return refuse(path, error)
    }
  }
  // A later look could come after an agent's edit.
  for (const name of PROMPT_NAMES) for (const folder of FOLDERS) readAt(folder, name)
  return {
    read: (name) => {
      const file = readAt(first, name)
      const own = file.kind === "text" ? file : choose(file, readAt(second, name))
      const isAbsent = own.kind === "unusable" && own.reason === ABSENT
      return shared !== undefined && (isAbsent || own.kind === "foreign") ? choose(own, readAt(shared, name)) : own
    },
  }
}

/** Lists where a file is, or would be, a prompt of Baton's: not at the project's own file of that name, unless Baton has one beside it. */
export const promptPaths = ({ read }: PromptFiles): string[] =>
  PROMPT_NAMES.flatMap((name) => {
    const file = read(name)
    const paths = FOLDERS.map((folder) => `${folder}/${name}.md`)
    return file.kind === "foreign" && !file.isLate ? paths.filter((path) => path !== file.path) : paths
  })

/** The prompts that come with this copy: beside a global one, and beside the `.opencode` of the npm package. */
const bundlePrompts: string = join(
  basename(dirname(bundleRoot)) === ".opencode" ? dirname(dirname(bundleRoot)) : dirname(bundleRoot),
  "prompts",
)

/** The prompts of a project; those of the copy that serves it stand in for the missing ones, if it has no copy of its own. */
export const openPromptFiles = (projectRoot: string): PromptFiles =>
  createPromptFiles({ root: projectRoot, shared: hasBundle(projectRoot) ? undefined : bundlePrompts })

// The role's compressed protocol: the section of a role prompt that goes into the task block, so that an agent still knows
// how to work after a compaction. It is read from the prompt, so that no second copy can differ.

/** Markers are whole lines, so that a sentence may mention them. */
const OPENING_MARKER = /^<!--[ \t]*baton:protocol[ \t]*-->$/
const CLOSING_MARKER = /^<!--[ \t]*\/baton:protocol[ \t]*-->$/

const TASK_ID_PLACEHOLDER = /\{\{[ \t]*task_id[ \t]*\}\}/g

export const fillTaskID = (text: string, taskID: string): string => text.replace(TASK_ID_PLACEHOLDER, () => taskID)

/**
 * Extracts the text between `<!-- baton:protocol -->` and `<!-- /baton:protocol -->`, each on a line of its own. The result
 * is trimmed, with `{{task_id}}` filled in and LF line ends.
 *
 * @param markdown a role prompt (prompts/worker.md or planner.md)
 * @returns undefined if a marker is missing or the section is empty: use `builtInProtocol`. Of two opening markers before one
 *   closing marker the later counts; of two sections the first counts
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
