import { join } from "node:path"
import { describeError, isNotFound, type Log } from "./log.ts"
import { accountFolder, ownOrShared } from "./project.ts"
import { isRecord, loadZod, type Parsed, type Zod } from "./schema.ts"
import { readOwnTextSync, readProjectConfig } from "./untrusted.ts"

export const SETTINGS_FILE = ".opencode/baton.json"

/** A string, a comment (an open one reaches to the end), or any other character. */
const COMMENTS = /"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g
const TRAILING_COMMAS = /"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])/g

/**
 * Parses JSON with comments and trailing commas, as OpenCode reads its own settings. Linear.
 *
 * @throws SyntaxError with the place in the text
 */
const parseJsonc = (text: string): unknown => {
  const blank = (found: string): string => (found.startsWith('"') ? found : found.replaceAll(/[^\n]/g, " "))
  const plain = text.replace(/^\uFEFF/, " ").replaceAll(COMMENTS, blank)
  return JSON.parse(plain.replaceAll(TRAILING_COMMAS, blank))
}

export const settingsSchema = (z: Zod) =>
  z.strictObject({
    $schema: z.string().optional(),
    handoff: z
      .strictObject({
        maxFiles: z.number().int().min(0).max(200).default(20).describe("Files that come with a draft at most"),
        maxKilobytes: z.number().int().min(1).max(10_000).default(400).describe("Of all files of a draft together"),
      })
      .prefault({}),
    autoHandoff: z
      .strictObject({
        at: z
          .number()
          .min(0.1)
          .max(0.95)
          .default(0.8)
          .describe("Share of the context at which an agent is to hand over"),
      })
      .optional(),
    liveState: z
      .strictObject({
        enabled: z.boolean().default(true).describe("Whether OpenCode's state is streamed to a writer"),
        strict: z.boolean().optional().describe("Whether the stream holds protocol version 1 and nothing more"),
        writer: z.unknown().optional().describe("Never run: only the account's own settings can name a program"),
      })
      .prefault({}),
    learning: z
      .strictObject({
        enabled: z.boolean().default(true).describe("Whether corrections are learned and given to later sessions"),
        project: z.string().min(1).optional().describe("The ledger's name of the project, for folders that share it"),
      })
      .prefault({}),
    compaction: z
      .enum(["baton", "opencode"])
      .default("baton")
      .describe("Whose prompt a session's summary is written by; OpenCode's gets the task as context"),
    autoTask: z.boolean().default(false).describe("Whether a session's first message becomes its task"),
    notices: z.enum(["all", "problems", "none"]).default("all").describe("Which notices Baton shows in the TUI"),
    claims: z
      .enum(["shared", "exclusive", "off"])
      .default("shared")
      .describe("Whether a session claims its task, and whether another's claim refuses it tools that change files"),
  })

/** The user's settings in `.opencode/baton.json`; each has a default. */
export type Settings = Parsed<typeof settingsSchema>

export const DEFAULT_SETTINGS: Settings = {
  handoff: { maxFiles: 20, maxKilobytes: 400 },
  liveState: { enabled: true },
  learning: { enabled: true },
  claims: "shared",
  compaction: "baton",
  autoTask: false,
  notices: "all",
}

/** The settings of a file that cannot be read: what can be off is off. It may have been meant to be. */
const SHUT_SETTINGS: Settings = { ...DEFAULT_SETTINGS, liveState: { enabled: false }, learning: { enabled: false } }

type SettingsRead =
  | { readonly kind: "settings"; readonly settings: Settings; readonly isDefault: boolean }
  /** `settings`: the valid part of the file; what the rest may have switched off is off. `isUnchecked`: zod is not there, the file may be valid. */
  | {
      readonly kind: "unusable"
      readonly path: string
      readonly reason: string
      readonly settings: Settings
      readonly isUnchecked?: true
    }

type Issue = { readonly path: readonly PropertyKey[]; readonly keys?: readonly string[] }

/** Removes the invalid parts, so that a typo in one place does not change other settings. A feature with one in its own section is off. */
const withoutInvalid = (content: unknown, issues: readonly Issue[]): unknown => {
  const kept: unknown = structuredClone(content)
  if (!isRecord(kept)) return {}
  for (const { path, keys } of issues) {
    const [section, key] = path
    if (section === "learning" || section === "liveState") kept[section] = { enabled: false }
    else if (section === undefined) for (const unknown of keys ?? []) delete kept[unknown]
    else if (isRecord(kept[String(section)]) && (key !== undefined || keys)) {
      const inside = kept[String(section)] as Record<string, unknown>
      for (const name of key === undefined ? (keys ?? []) : [String(key)]) delete inside[name]
    } else delete kept[String(section)]
  }
  return kept
}

/** @param projectRoot absolute path of the folder that holds `.opencode` @param folder see ownOrShared */
export const readSettings = async (projectRoot: string, folder?: string): Promise<SettingsRead> => {
  const path = ownOrShared(projectRoot, SETTINGS_FILE, folder)
  let content: unknown
  try {
    content = parseJsonc(readProjectConfig(projectRoot, path).toString("utf8"))
  } catch (error) {
    if (isNotFound(error)) return { kind: "settings", settings: DEFAULT_SETTINGS, isDefault: true }
    return { kind: "unusable", path, reason: describeError(error), settings: SHUT_SETTINGS }
  }
  let schema: ReturnType<typeof settingsSchema>
  try {
    schema = settingsSchema(await loadZod())
  } catch (error) {
    return { kind: "unusable", path, reason: describeError(error), settings: SHUT_SETTINGS, isUnchecked: true }
  }
  const parsed = schema.safeParse(content)
  if (parsed.success) return { kind: "settings", settings: parsed.data, isDefault: false }
  const { issues } = parsed.error
  const [issue] = issues
  const rest = schema.safeParse(withoutInvalid(content, issues))
  const place = issue?.path.join(".") ?? ""
  return {
    kind: "unusable",
    path,
    reason: `${place === "" ? "" : `${place}: `}${issue?.message ?? "it is not valid"}`,
    settings: isRecord(content) && rest.success ? rest.data : SHUT_SETTINGS,
  }
}

/**
 * Tells, without parsing them, whether the settings name one: a feature that needs it is loaded then.
 *
 * @param folder see ownOrShared
 */
export const mayHaveSetting = (projectRoot: string, name: string, folder?: string): boolean => {
  try {
    return readProjectConfig(projectRoot, ownOrShared(projectRoot, SETTINGS_FILE, folder)).includes(`"${name}"`)
  } catch {
    // There are none, or they are unreadable, which settingsOrDefaults reports.
    return false
  }
}

/** Shows a problem to the user; a `Notices`. */
type Tell = (notice: { title: string; message: string; isProblem: true }) => void

/**
 * Reads the settings. Invalid ones get their default, or are off, with one warning that names the file, the place and the expected value.
 */
export const settingsOrDefaults = async (projectRoot: string, log: Log, notices?: Tell): Promise<Settings> => {
  const read = await readSettings(projectRoot)
  if (read.kind === "unusable") {
    notices?.({
      title: "a setting is unusable",
      message: `${read.path}: ${read.reason}. What can be off is off.`,
      isProblem: true,
    })
    log.warn("a setting is unusable: it has its default, and what can be off is off", {
      path: read.path,
      reason: read.reason,
    })
  }
  return read.settings
}

/** The account's own settings: outside of all projects, none of which can change them. Each names a program and its arguments. */
const accountSettingsSchema = (z: Zod) => {
  const argv = z.tuple([z.string().min(1)], z.string().min(1)).optional()
  return z.strictObject({
    /** Run for each request that waits for a person. */
    onWaiting: argv,
    /** Gets the stream of the live state. */
    liveState: z.strictObject({ writer: argv }).optional(),
  })
}

export const accountSettingsPath = (environment = process.env): string => join(accountFolder(environment), "baton.json")

/**
 * Reads the account's settings; none where there is no file.
 *
 * @throws RefusedFile, SyntaxError, the file system's or zod's own error
 */
export const readAccountSettings = async (environment = process.env): Promise<Parsed<typeof accountSettingsSchema>> => {
  let content: unknown
  try {
    content = parseJsonc(readOwnTextSync(accountSettingsPath(environment)))
  } catch (error) {
    if (isNotFound(error)) return {}
    throw error
  }
  return accountSettingsSchema(await loadZod()).parse(content)
}
