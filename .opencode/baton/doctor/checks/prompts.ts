import { parseTask, ROLES, type Role } from "../../task/parse.ts"
import { createPromptFiles, extractProtocol, fillTaskID, type PromptFile, type PromptName } from "../../task/prompts.ts"
import { broken, type Check, type Observation, ok, warning } from "../finding.ts"

const EXAMPLE_ID = "ts-0a1b2c"

/** Both sides of docs/prompts.md: what a role prompt must hold so that Baton finds task, role and protocol in it. */
const judgeRolePrompt = (role: Role, file: string, text: string): readonly Observation[] => {
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

/** Without `$ARGUMENTS` OpenCode puts the goal at the end; without the tool's name the model may only talk. */
const judgeCommandPrompt = (file: string, text: string): Observation => {
  const missing = ["$ARGUMENTS", "handoff_session"].filter((word) => !text.includes(word))
  if (missing.length === 0) return ok(`${file} is the template of /handoff`)
  return warning(
    `${file} does not mention ${missing.join(" and ")}`,
    "Put it back, as in the version that comes with Baton.",
  )
}

const judgeText = (name: PromptName, path: string, text: string): readonly Observation[] => {
  if (name === "handoff") return [ok(`${path} is the prompt of every compaction`)]
  return name === "handoff-command" ? [judgeCommandPrompt(path, text)] : judgeRolePrompt(name, path, text)
}

/** A project's own file is never judged. */
const leftAlone = (name: PromptName, path: string, used: string): Observation =>
  ok(
    `${path} is the project's own file and is left alone; Baton uses ${used}. ` +
      `To make it Baton's, add the line <!-- baton:${name} -->`,
  )

const judge = (name: PromptName, file: PromptFile): readonly Observation[] => {
  const builtIn = name.startsWith("handoff") ? "built-in prompt" : "built-in protocol"
  if (file.kind === "foreign") return [leftAlone(name, file.path, `its ${builtIn}`)]
  if (file.kind === "unusable") {
    const message = `${file.path} cannot be used: ${file.reason}; the ${builtIn} is used`
    return [warning(message, "Mend the file, or run scripts/install again.")]
  }
  const judged = judgeText(name, file.path, file.text)
  return file.foreign === undefined ? judged : [leftAlone(name, file.foreign, file.path), ...judged]
}

export const promptsCheck: Check = {
  id: "prompts",
  needsBundle: true,
  examine: async ({ root }) => {
    const prompts = createPromptFiles({ root })
    const names: readonly PromptName[] = ["handoff", "handoff-command", ...ROLES]
    return (await Promise.all(names.map(async (name) => judge(name, await prompts.read(name))))).flat()
  },
}
