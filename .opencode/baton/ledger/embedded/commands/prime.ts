import { anyArguments, type Command, type CommandContext, CommandError, lines } from "../command.ts"
import { StoreError } from "../store-error.ts"
import { type Overview, readOverview } from "./overview.ts"

const WORKFLOW = `# prog in short

prog keeps tasks, their logs and what was learned between sessions. 'prog status' shows where things stand.

## Taking up a task

1. prog ready                       # what can be begun
2. prog show <id>                   # the brief, the definition of done, the log
3. prog start <id>                  # say that you are on it
4. prog context -c <concept> -p <project> --summary   # what is known already

## While working

- prog log <id> "what happened"     # often: after each step, decision and failure
- prog append <id> "text"           # add to the description; prog desc replaces all of it
- prog add "title" -p <project>     # work that turns up; --blocks <id>, --parent <epic>, -l <label>
- prog blocks <id> <other>          # the second waits for the first

## Before you stop

1. Check each point of the definition of done, and run what it names.
2. prog log <id> "where it stands, and what is next"
3. prog done <id>, or prog review <id> when a merge is awaited, or leave it in progress.
4. prog learn "one line" -c <concept> -p <project> --detail "why, with an example"
   Keep what the next reader could not see in the code; what merely happened belongs in the log.`

const statusSection = (heading: string, overview: Overview, status: string): string[] => {
  const items = overview.withStatus(status)
  return items.length === 0 ? [] : ["", heading, ...items.map(({ id, title }) => `  [${id}] ${title}`)]
}

const currentState = (context: CommandContext): string[] => {
  try {
    const overview = readOverview(context, "", [])
    return [
      ...statusSection("In progress:", overview, "in_progress"),
      ...statusSection("Reviewing:", overview, "reviewing"),
      ...statusSection("Blocked:", overview, "blocked"),
      "",
      "Run 'prog ready [-p project]' to find unblocked work.",
    ]
  } catch (error) {
    if (error instanceof CommandError || error instanceof StoreError) {
      return ["", `(No database connection - run 'prog init' if needed: ${error.message})`]
    }
    throw error
  }
}

const prime: Command = {
  name: "prime",
  operands: "",
  summary: "Print how to work with prog, and the current state; succeeds without a database too",
  arguments: anyArguments,
  flags: [],
  run: (_invocation, context) => lines([WORKFLOW, "", "## Current State", ...currentState(context)]),
}

export const primeCommands: readonly Command[] = [prime]
