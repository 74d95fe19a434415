import { parseTask } from "../../task/parse.ts"
import { createPromptFiles, type PromptName } from "../../task/prompt-files.ts"
import { extractProtocol, fillTaskID } from "../../task/protocol.ts"
import { ROLES, type Role } from "../../task/role.ts"
import { broken, type Check, type Observation, ok, warning } from "../finding.ts"

const EXAMPLE_ID = "ts-0a1b2c"

/** Both sides of docs/prompts.md: what a role prompt must hold so that Baton finds task, role and protocol in it. */
export const judgeRolePrompt = (role: Role, text: string): readonly Observation[] => {
  const file = `prompts/${role}.md`
  const task = parseTask(fillTaskID(text, EXAMPLE_ID))
  const found: Observation[] = []
  if (task?.taskID !== EXAMPLE_ID) {
    const message = `${file} has no line 'Task: {{task_id}}' at the first column: its sessions have no task`
    found.push(broken(message, "Put the line back, as in the version that comes with Baton."))
  } else if (task.role !== role) {
    const heading = `# ${role === "planner" ? "Planner" : "Worker"}`
    found.push(
      broken(`${file} is read as the prompt of a ${task.role}`, `Give it the heading '${heading}' first of all.`),
    )
  }
  if (extractProtocol(text, { taskID: EXAMPLE_ID }) === undefined) {
    const message = `${file} has no protocol section: the built-in one is used after a compaction`
    const fix = "Mark the section with the lines '<!-- baton:protocol -->' and '<!-- /baton:protocol -->'."
    found.push(warning(message, fix))
  }
  return found.length > 0 ? found : [ok(`${file} states task, role and protocol`)]
}

const judgeUnusable = (name: PromptName, path: string, reason: string): Observation => {
  const instead = name.startsWith("handoff") ? "the built-in prompt is used" : "the built-in protocol is used"
  return warning(`${path} cannot be used: ${reason}; ${instead}`, "Mend the file, or run scripts/install again.")
}

/** Without `$ARGUMENTS` OpenCode puts the goal at the end; without the tool's name the model may only talk. */
export const judgeCommandPrompt = (text: string): Observation => {
  const file = "prompts/handoff-command.md"
  const missing = ["$ARGUMENTS", "handoff_session"].filter((word) => !text.includes(word))
  if (missing.length === 0) return ok(`${file} is the template of /handoff`)
  return warning(
    `${file} does not mention ${missing.join(" and ")}`,
    "Put it back, as in the version that comes with Baton.",
  )
}

export const promptsCheck: Check = {
  id: "prompts",
  needsBundle: true,
  examine: async ({ root }) => {
    const prompts = createPromptFiles({ root })
    const handoff = await prompts.read("handoff")
    const command = await prompts.read("handoff-command")
    const roles = await Promise.all(ROLES.map(async (role) => ({ role, file: await prompts.read(role) })))
    return [
      handoff.kind === "text"
        ? ok("prompts/handoff.md is the prompt of every compaction")
        : judgeUnusable("handoff", handoff.path, handoff.reason),
      command.kind === "text"
        ? judgeCommandPrompt(command.text)
        : judgeUnusable("handoff-command", command.path, command.reason),
      ...roles.flatMap(({ role, file }) =>
        file.kind === "text" ? judgeRolePrompt(role, file.text) : [judgeUnusable(role, file.path, file.reason)],
      ),
    ]
  },
}
