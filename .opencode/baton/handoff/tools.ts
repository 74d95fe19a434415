import type { Config, ToolDefinition } from "@opencode-ai/plugin"
import { createLruMap } from "../host/async.ts"
import type { Log } from "../host/log.ts"
import { collectUserText, disableTools, noteTextOf, OWN_COMMAND_TEXT } from "../host/messages.ts"
import { type Parsed, ARGUMENT_TYPES as types, validated, type Zod } from "../host/schema.ts"
import type { StoredMessage } from "../host/sessions.ts"
import type { Notices } from "../host/tui.ts"
import { openPromptFiles, type PromptFiles, tellUnused } from "../task/prompts.ts"
import { TOOL_DETAILS } from "./transcript.ts"
import type { UserTurns } from "./user-turns.ts"

export const HANDOFF_TOOL = "handoff_session"
export const READ_TOOL = "read_session"
type HandoffTool = typeof HANDOFF_TOOL | typeof READ_TOOL

/** The word alone is often about something else: a section of a handoff, one that was made. */
const WANTS_HANDOFF = new RegExp(
  [
    String.raw`\bhandoff_session\b|(?:^|\s)/handoff\b`,
    String.raw`\bhand(?:ing)?\b(?:[ -][^\s-]+){0,6}?[ -](?:off|over)\b|\b(?:please|now) hand-?off\b`,
    String.raw`\b(?:do|make|start|write|create|prepare|begin|need|want|run|call|for|now)(?: \S+){0,2}? hand-?off(?! ?(?:section|note|file|text)s?\b)\b`,
  ].join("|"),
  "im",
)
const WANTS_READING = /\bread_session\b|\bses_[A-Za-z0-9]{10,}/

/** Returns the tools that a user's text asks for: /handoff's template names one, a draft's first line the other. */
export const toolsAskedFor = (text: string): HandoffTool[] => [
  ...(WANTS_HANDOFF.test(text) ? ([HANDOFF_TOOL] as const) : []),
  ...(WANTS_READING.test(text) ? ([READ_TOOL] as const) : []),
]

/**
 * Removes the feature's tools from a model's request until the session asks for them. A session that never hands over then sends
 * the same request as without the bundle.
 */
export const createToolOffers = () => {
  const asked = createLruMap<Set<HandoffTool>>()
  return {
    /** @param others offered whether asked for or not */
    applyTo: (messages: readonly StoredMessage[], others: readonly HandoffTool[] = []): void => {
      const newest = messages.findLast(({ info }) => info.role === "user")?.info
      if (newest?.role !== "user") return
      const wanted = asked.get(newest.sessionID) ?? new Set()
      for (const tool of others) wanted.add(tool)
      asked.set(newest.sessionID, wanted)
      for (const { info, parts } of messages) {
        if (info.role !== "user" || wanted.size === 2) continue
        for (const tool of toolsAskedFor(collectUserText(parts))) wanted.add(tool)
        // The note about a task's last handoff names the tool and the session to read.
        if (parts.some((part) => noteTextOf(part)?.includes(READ_TOOL))) wanted.add(READ_TOOL)
      }
      const hidden = [HANDOFF_TOOL, READ_TOOL].filter((tool) => !wanted.has(tool as HandoffTool))
      disableTools(messages, hidden)
    },
    /** The session's messages were examined before. */
    isKnown: (sessionID: string): boolean => asked.has(sessionID),
    /** For a session whose draft was removed by compaction. */
    enable: (sessionID: string): void => {
      asked.set(sessionID, new Set([READ_TOOL]))
    },
    forget: (sessionID: string): void => {
      asked.delete(sessionID)
    },
  }
}

/** The template of /handoff when prompts/handoff-command.md cannot be used. */
const BUILT_IN_COMMAND = `Hand this work over to a new session, which starts with nothing but what you write now.

1. Choose the files it must have in front of it at its start: 8 to 15, up to 20 for complex work.
2. Write a prompt for it: the goal, what is done, in progress and next, decisions and their reasons, constraints, the
   user's preferences, patterns to keep to, and what was tried and failed. Keep literals exactly and invent nothing. The
   user's messages, definition of done, specification, files touched, todos, git state, task and role are added by program.

The goal as the user gave it (when nothing stands here, continue what was being done; \`--start\` is for the program):

$ARGUMENTS

Now call the tool handoff_session with \`prompt\` and \`files\`, at once. Then tell the user what it said and end your turn.
`

/** Head and end of our command's template, which stand before and behind what the user typed. */
const templateOf = (prompts: Pick<PromptFiles, "read">): [head: string, end: string] => {
  const file = prompts.read("handoff-command")
  const [head = "", end = ""] = (file.kind === "text" ? file.text : BUILT_IN_COMMAND).split("$ARGUMENTS")
  return [head.trim(), end.trim()]
}

/** Recognises a user's message that is our command's template, filled in; after an edit by the newest text. */
export const isOwnCommand = (prompts: Pick<PromptFiles, "read">): ((text: string) => boolean) => {
  const [head] = templateOf(prompts)
  return (text) => OWN_COMMAND_TEXT.test(text.trim()) || (head !== "" && text.trim().startsWith(head))
}

/** Shows our command as it was typed, `/handoff GOAL`, in place of its template; another message as it is. */
export const asTyped = (message: StoredMessage, prompts: Pick<PromptFiles, "read">): StoredMessage => {
  if (message.info.role !== "user") return message
  const [head, end] = templateOf(prompts)
  const parts = message.parts.map((part) => {
    if (part.type !== "text" || !part.text.trim().startsWith(head) || !part.text.trim().endsWith(end)) return part
    const text = part.text.trim()
    return { ...part, text: `/handoff ${text.slice(head.length, text.length - end.length).trim()}`.trim() }
  })
  return { ...message, parts }
}

const COMMAND_NAME = "handoff"
/** For a project or a user that already has a command named handoff. */
const OTHER_COMMAND_NAME = "baton-handoff"

const DESCRIPTION = "continue this work in a new session, with the right context and files [goal]"

/**
 * Registers /handoff, or /baton-handoff when that name is taken.
 *
 * OpenCode reads `template` at each use (seen on 1.2.15 and 1.18.33), so an edit of the file takes effect at once.
 */
export const registerCommand = (config: Config, prompts: PromptFiles, log: Log, notices: Notices): void => {
  config.command ??= {}
  const name = config.command[COMMAND_NAME] === undefined ? COMMAND_NAME : OTHER_COMMAND_NAME
  if (config.command[name] !== undefined) {
    log.warn("neither /handoff nor /baton-handoff is registered: both names are taken")
    return
  }
  if (name !== COMMAND_NAME) log.info("there is a command named handoff already: /baton-handoff is registered instead")
  let shownReason: string | undefined
  config.command[name] = {
    description: DESCRIPTION,
    get template() {
      const file = prompts.read("handoff-command")
      if (file.kind === "text") {
        shownReason = undefined
        return file.text
      }
      // OpenCode also reads it whenever it lists the commands; log once.
      const reason = file.kind === "foreign" ? "foreign" : file.reason
      if (shownReason !== reason) tellUnused({ notices, log }, file, { prompt: "handoff command", text: "text" })
      shownReason = reason
      return BUILT_IN_COMMAND
    },
  }
}

const HANDOFF_DESCRIPTION = `Hands this work over to a new session: puts your prompt and references to the files into its draft, for the user to review and send. Call it when the user asks for a handoff, once.

- prompt: what the new session has to know to go on. The user's messages, definition of done, specification, files touched, open todos, git state, task and role are added by program.
- files: paths of the files to load at its start, 8 to 15, at most 20. A line range is possible: src/a.ts:10-80. What cannot be loaded is named in the answer.
- start: true has the new session begin at once, without the user; where that cannot be, the answer says why
- agent, model (provider/model): for the new session; by default those of this one`

const READ_DESCRIPTION = `Reads what was said and done in an earlier session of this project, newest messages last. Use it when a handoff lacks something specific.

- sessionID: the full id, ses_…
- limit: how many of the newest messages, 1 to 500 (default 100)
- before: a message id; reads the messages before it
- search: a text, or /a regular expression/i; shows the matching lines with some around them
- words: the same for messages that have all of these words, in any order
- tools: "none", "titles" (default) or "full" (with inputs and outputs)
- any: true reads a session that this one does not come from and shares no task with`

const handoffArguments = (z: Zod) =>
  z.object({
    prompt: z.string(),
    files: z.array(z.string()).default([]),
    start: z.boolean().optional(),
    agent: z.string().optional(),
    model: z.string().optional(),
  })

const readArguments = (z: Zod) =>
  z.object({
    sessionID: z.string(),
    limit: z.number().optional(),
    before: z.string().optional(),
    search: z.string().optional(),
    words: z.string().optional(),
    tools: z.enum(TOOL_DETAILS).optional(),
    any: z.boolean().optional(),
  })

/** The feature, as the tools need it. */
type HandoffActions = {
  handOver(request: Parsed<typeof handoffArguments> & { sessionID: string; goal: string }): Promise<string>
  readSession(sessionID: string, request: Parsed<typeof readArguments>): Promise<{ title: string; output: string }>
}

type HandoffToolDeps = {
  load: () => Promise<HandoffActions>
  turns: Pick<UserTurns, "goalOf" | "oncePerTurn">
}

export const createHandoffTools = ({ load, turns }: HandoffToolDeps): Record<string, ToolDefinition> => ({
  [HANDOFF_TOOL]: {
    description: HANDOFF_DESCRIPTION,
    args: {
      prompt: types.string("What the new session has to know to go on"),
      files: types.optionalStrings("Paths of files to load into the new session"),
      start: types.optionalBoolean("Whether the new session begins at once"),
      agent: types.optionalString("The new session's agent"),
      model: types.optionalString("The new session's model: provider/model"),
    },
    execute: validated(handoffArguments, async (request, { sessionID }) => {
      const { handOver } = await load()
      const goal = turns.goalOf(sessionID)
      return turns.oncePerTurn(sessionID, () => handOver({ ...request, sessionID, goal }))
    }),
  },
  [READ_TOOL]: {
    description: READ_DESCRIPTION,
    args: {
      sessionID: types.string("Full session id, ses_…"),
      limit: types.optionalNumber("How many of the newest messages: 1 to 500, default 100"),
      before: types.optionalString("A message id: reads the messages before it"),
      search: types.optionalString("A text, or /a regular expression/i, to find in the session"),
      words: types.optionalString("Words that must all be in a message, in any order"),
      tools: types.optionalChoice(TOOL_DETAILS, 'How tools are shown: "none", "titles" or "full"'),
      any: types.optionalBoolean("Whether to read a session that this one does not come from"),
    },
    execute: validated(readArguments, async (request, context) => {
      const { title, output } = await (await load()).readSession(context.sessionID, request)
      context.metadata({ title })
      return output
    }),
  },
})

/** The parts of the feature that OpenCode needs at its start. */
export const createHandoffSetup = ({
  projectRoot,
  log,
  notices,
}: {
  projectRoot: string
  log: Log
  notices: Notices
}) => ({
  offers: createToolOffers(),
  registerCommand: (config: Config): void => registerCommand(config, openPromptFiles(projectRoot), log, notices),
  createTools: createHandoffTools,
})

export type HandoffSetup = ReturnType<typeof createHandoffSetup>
