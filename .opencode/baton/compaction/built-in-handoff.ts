/**
 * The summariser's instructions for when prompts/handoff.md cannot be used: the same headings, fewer words.
 *
 * The summariser has no tools, so nothing here asks it to run anything.
 */
export const BUILT_IN_HANDOFF_PROMPT = `# Write the handoff

The conversation is about to be dropped. Another agent goes on with the same task and knows only what you write now.
You have no tools: answer with the handoff alone. Carry over everything in the earlier handoff, if one is given, that is
still true. Keep ids, paths, commands, error messages and numbers exactly, and the user's demands in the user's words.
Of a secret, write where it is kept, never its value. Write "unknown" rather than guess. Terse bullets under these
headings, all of them, in this order; an empty one says "none".

## Done
What is finished, and how it was seen to work.

## In progress
What was begun, and the exact point it has reached.

## Files being changed
Path, what changes and why; committed or not.

## Next
The next steps in order; the first can be started at once.

## Tried and failed
What was tried, the error word for word, why; hypotheses ruled out.

## Constraints and decisions that must persist
What the user, the specification or the project demands or forbids. Never shorten this list.

## Technical decisions and why
What was chosen, the reason, what was rejected.

## Protocol state
Task ID, role, state, last checkpoint; stuck or blocked on what.

## Recording
Tell the continuing agent: this handoff is already recorded; go on with \`prog log ID "…"\` for each step and \`prog desc\`
for the handoff section of the description only, with the specification left word for word.
`
