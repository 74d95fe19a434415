/** The template of /handoff while prompts/handoff-command.md cannot be used. */
export const BUILT_IN_COMMAND = `Hand this work over to a new session, which starts with nothing but what you write now.

1. Choose the files it must have in front of it at its start: 8 to 15, up to 20 for complex work.
2. Write a prompt for it: the goal, what is done, in progress and next, decisions and their reasons, constraints, the
   user's preferences, patterns to keep to, and what was tried and failed. Keep literals exactly and invent nothing. The
   user's first request, files touched, todos, git state, task and role are added by program.

The goal as the user gave it (when nothing stands here, continue what was being done):

$ARGUMENTS

Now call the tool handoff_session with \`prompt\` and \`files\`, at once. Then tell the user what it said and end your turn.
`
