import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { loadZod } from "../../host/schema.ts"
import { readSettings, SETTINGS_FILE, settingsSchema } from "../../host/settings.ts"
import { readOwnText } from "../../host/untrusted.ts"
import { POLICY_FILE } from "../../pass-over/policy/policy-path.ts"
import { parseTask, ROLES, type Role } from "../../task/parse.ts"
import {
  createPromptFiles,
  extractProtocol,
  fillTaskID,
  hasContractComment,
  type PromptFile,
  type PromptName,
} from "../../task/prompts.ts"
import { type Installed, isCode, readInstalled } from "../installed.ts"
import { broken, type Check, INSTALL_HERE, type Observation, ok, warning } from "../report.ts"
import type { Serving } from "../serving.ts"

const PENDING = /\.baton-new$/
const PROMPT = /^(?:\.opencode\/)?prompts\//
const REINSTALL = "Install Baton again: scripts/install from a checkout, or npx baton-opencode update"

const name = (paths: readonly string[]): string =>
  paths.length <= 5 ? paths.join(", ") : `${paths.slice(0, 5).join(", ")} and ${paths.length - 5} more`

/** An observation about files, where there are any. */
const about = (
  judge: typeof broken,
  paths: readonly string[],
  { what, fix }: { what: string; fix: string },
): readonly Observation[] => (paths.length === 0 ? [] : [judge(`${what}: ${name(paths)}`, fix)])

/** A project's own file in a prompts folder lacks Baton's comment. */
const isProjectsOwn = async (at: Serving["at"], path: string): Promise<boolean> => {
  if (!PROMPT.test(path)) return false
  try {
    return !hasContractComment(await readOwnText(at(path), { isForeign: true }))
  } catch {
    // Missing or unreadable: nothing of the user's can be lost, and the prompts check reports it.
    return false
  }
}

const checkPending = async (at: Serving["at"], pending: readonly string[]): Promise<readonly Observation[]> => {
  const own = await Promise.all(pending.map((path) => isProjectsOwn(at, path.replace(PENDING, ""))))
  const besideOwn = pending.filter((_, index) => own[index])
  const newer = pending.filter((_, index) => !own[index])
  return [
    ...about(warning, newer, {
      what: "a newer version waits beside your own file",
      fix: "Merge it into your file and delete it, or rename it over yours.",
    }),
    ...about(warning, besideOwn, {
      what: "a version of Baton's lies beside the project's own file",
      fix: "Delete it: your file is left alone. If that is meant for Baton, take over what is new first, its comment too.",
    }),
  ]
}

const compare = async (
  at: Serving["at"],
  { manifest, states, unlisted }: Installed,
): Promise<readonly Observation[]> => {
  const paths = [...manifest.files.keys()]
  const missing = paths.filter((path) => states.get(path) === "missing" && !PENDING.test(path))
  // Without the policy nothing is passed over: deleting it is how that is switched off.
  const code = missing.filter((path) => !PROMPT.test(path) && path !== POLICY_FILE)
  const prompts = missing.filter((path) => PROMPT.test(path))
  const pending = paths.filter((path) => PENDING.test(path) && existsSync(at(path)))
  const changed = paths.filter((path) => states.get(path) === "changed" && !PENDING.test(path))
  const changedCode = changed.filter(isCode)
  const own = changed.filter((path) => !isCode(path))
  const halfway = paths.some((path) => (manifest.files.get(path)?.length ?? 0) > 1)
  const version = `Baton ${manifest.version ?? "of unknown version"}, ${paths.length} files`
  return [
    ...about(broken, code, { what: "files of Baton are missing", fix: `${REINSTALL}.` }),
    ...about(broken, changedCode, {
      what: "files of Baton are not as they were installed",
      fix: "Delete them, if you did not change them yourself, and install Baton again (scripts/install from a checkout, or npx baton-opencode update).",
    }),
    ...about(broken, unlisted, {
      what: "files in .opencode/baton that the installer did not put there",
      fix: "Look at them and delete them: OpenCode, or your agent's shell, may run them.",
    }),
    ...(halfway
      ? [broken("an installation was interrupted halfway", `${REINSTALL}; it takes up where it stopped.`)]
      : []),
    ...about(warning, prompts, { what: "prompts were removed", fix: `${REINSTALL} to have them back.` }),
    ...(await checkPending(at, pending)),
    ...(changedCode.length > 0
      ? []
      : [ok(own.length > 0 ? `${version}; changed since the installation: ${name(own)}` : `${version}, unchanged`)]),
  ]
}

const UNKNOWN = "not installed by a command of Baton (a checkout or a copy made by hand), so changes cannot be told"
const NO_COPY = "no copy in the project"

/** Compares files with the manifest of scripts/install; a project without a copy is told which one serves it. A prompt or a policy that the user changed is no fault. */
export const filesCheck: Check = {
  id: "files",
  run: async (context) => {
    const { root, serving } = context
    const { kind, at, folder, entry } = serving
    if (kind === "none") return [broken(`no Baton in ${root}: there is no .opencode/baton`, INSTALL_HERE)]
    if (kind === "package") return [ok(`${NO_COPY}: OpenCode loads the plugin ${entry} that opencode.json names`)]
    const installed = await readInstalled(at)
    const found = installed === undefined ? [ok(UNKNOWN)] : await compare(at, installed)
    return kind === "global" ? [ok(`${NO_COPY}: the one in ${folder} serves it`), ...found] : found
  },
}

/** The keys beside one that zod does not know, which it does not name. @param reason of settings that cannot be used */
const knownKeys = async (reason: string): Promise<string> => {
  const [isUnknown, section] = /^(?:(\w+): )?Unrecognized key/.exec(reason) ?? []
  if (isUnknown === undefined) return ""
  const z = await loadZod()
  const { shape } = settingsSchema(z)
  const inside = Object.entries(shape)
    .find(([name]) => name === section)?.[1]
    .unwrap()
  return ` It may hold ${Object.keys(inside instanceof z.ZodObject ? inside.shape : shape).join(", ")}.`
}

export const settingsCheck: Check = {
  id: "settings",
  needsBundle: true,
  run: async ({ root, serving }) => {
    const read = await readSettings(root, serving.folder)
    if (read.kind === "unusable") {
      if (read.isUnchecked)
        return [ok(`${SETTINGS_FILE} is not checked: zod is not here before OpenCode's first start`)]
      const until =
        "Until then what can be off is off, other invalid settings have their defaults, and the rest counts."
      const shown = read.path === join(root, SETTINGS_FILE) ? SETTINGS_FILE : read.path
      const fix = `Mend ${shown}.${await knownKeys(read.reason)} ${until}`
      return [warning(`${shown} cannot be used: ${read.reason}`, fix)]
    }
    return [ok(read.isDefault ? `no ${SETTINGS_FILE}: the defaults are used` : `${SETTINGS_FILE} is in order`)]
  },
}

const EXAMPLE_ID = "ts-0a1b2c"

/** Checks a role prompt against docs/prompts.md: Baton must find task, role and protocol in it. */
const checkRolePrompt = (role: Role, file: string, text: string): readonly Observation[] => {
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

/** Without `$ARGUMENTS` OpenCode appends the goal; without the tool's name the model may answer without calling it. */
const checkCommandPrompt = (file: string, text: string): Observation => {
  const missing = ["$ARGUMENTS", "handoff_session"].filter((word) => !text.includes(word))
  if (missing.length === 0) return ok(`${file} is the template of /handoff`)
  return warning(
    `${file} does not mention ${missing.join(" and ")}`,
    "Put it back, as in the version that comes with Baton.",
  )
}

const checkText = (name: PromptName, path: string, text: string): readonly Observation[] => {
  if (name === "handoff") return [ok(`${path} is the prompt of every compaction`)]
  return name === "handoff-command" ? [checkCommandPrompt(path, text)] : checkRolePrompt(name, path, text)
}

/** A project's own file is not checked. */
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
    return [warning(message, "Mend the file, or install Baton again.")]
  }
  const judged = checkText(name, file.path, file.text)
  return file.foreign === undefined ? judged : [leftAlone(name, file.foreign, file.path), ...judged]
}

const sharedPrompts = ({ kind, folder }: Serving): string | undefined => {
  if (kind === "global") return join(folder, "prompts")
  return kind === "package" ? join(dirname(folder), "prompts") : undefined
}

export const promptsCheck: Check = {
  id: "prompts",
  needsBundle: true,
  run: async ({ root, serving }) => {
    const prompts = createPromptFiles({ root, shared: sharedPrompts(serving) })
    const names: readonly PromptName[] = ["handoff", "handoff-command", ...ROLES]
    return names.flatMap((name) => judge(name, prompts.read(name)))
  },
}
