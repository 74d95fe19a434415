/** Why a test, or a part of one, does not run on OpenCode 2.0.15, where it cannot show what it promises. */
export const REASONS = {
  handoff: "/handoff is off there",
  passes: "passes are off there",
  "live state": "live state is off there",
  "child sessions": "OpenCode 2 makes a child for its subagents alone, whose call has claimed the task before",
  "answers to the model": "OpenCode 2 has a line for an answer, for which no model is asked",
  terminal: "its terminal is looked at by hand; see docs/opencode-2.md",
  notices:
    "OpenCode 2 shows a notice of a plugin as a lasting line in an idle session alone, and else asks the model again",
  todos: "OpenCode 2 has no todos",
  "the prompt's hook": "a plugin for OpenCode 1 shows the prompt; there the request for the summary does",
  "OpenCode's summaries": "Baton asks for the summary of each session there: v2.B7",
  commands: "OpenCode 2 tells a plugin of no command behind a message: its template counts as the user's words",
  "users' rules":
    "OpenCode 2 tells a plugin its verdict, not the rule that gave it: a user's rule for a file of Baton's does not count",
  "small contexts": "OpenCode 2 keeps 20,000 tokens free: a smaller model compacts at its first request",
  "compactions in a row":
    "OpenCode 2 does nothing when nothing is new to summarise; opencode-2/compaction.test.ts has turns between",
  "older messages": "OpenCode 2 shows a plugin no message from before the newest compaction",
} as const

export type Reason = keyof typeof REASONS

/** Sentences of the tests of compaction, task, ledger, learning and trust that do not run there. */
export const LEFT_OUT_ON_2: Readonly<Record<string, Reason>> = {
  "a model of 8,000 tokens does not compact in a loop": "small contexts",
  "a session from before the bundle is found by its history": "older messages",
  "a fork has what the user said to its original once": "older messages",
  "three compactions by hand in a row are recorded once each": "compactions in a row",
  "a session that hands its task over does not keep the next one from it": "handoff",
  "/task begins a task and shows it; events are told": "terminal",
  "/handoff runs no file monitor and no filter of the repository's": "handoff",
  "one task is the same in summary, turn, handoff, subagent, live state and ledger": "passes",
  "a child session works under its parent's claim": "child sessions",
  "a session's events are told once each, its process ending or not": "notices",
  "only problems are told where the setting says so": "notices",
  "a rule of the user's own that names the files decides, in the project and for an agent": "users' rules",
  "a writer is run if the account's settings name it, not if the project's do": "live state",
}
