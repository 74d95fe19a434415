import { readdir, readFile } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { describeError, isAbsent, type Log } from "../host/log.ts"
import { type FrontMatterValue, type Markdown, parseFrontMatter } from "./front-matter.ts"

export type SkillAgent = {
  readonly name: string
  readonly description: string
  readonly prompt: string
  /** As it stands in the front matter; OpenCode checks it. */
  readonly permission: FrontMatterValue | undefined
}

const FOLDERS = ["skill", "skills"]

const list = async (folder: string, log: Pick<Log, "warn">): Promise<string[]> => {
  try {
    return (await readdir(folder)).sort()
  } catch (error) {
    if (!isAbsent(error)) log.warn("skills cannot be listed", { folder, error: describeError(error) })
    return []
  }
}

const read = async (path: string, log: Pick<Log, "warn">): Promise<string | undefined> => {
  try {
    return await readFile(path, "utf8")
  } catch (error) {
    // A folder without SKILL.md, or a name in the folder that is no skill.
    if (!isAbsent(error)) log.warn("a skill cannot be read", { path, error: describeError(error) })
    return undefined
  }
}

const nameOf = (path: string): string => {
  const file = basename(path, ".md")
  return file === "SKILL" ? basename(dirname(path)) : file
}

/** @returns the agent that a skill asks to be, by `subagent: true` in its front matter */
const toSkillAgent = (path: string, { data, body }: Markdown): SkillAgent | undefined => {
  if (data.subagent !== true || body === "") return undefined
  const name = typeof data.name === "string" ? data.name : nameOf(path)
  const description = typeof data.description === "string" ? data.description : `The skill ${name}`
  return { name: `skill/${name}`, description, prompt: body, permission: data.permission }
}

/** The skills of a project that are subagents: `.opencode/skill/*.md` and `.opencode/skills/<name>/SKILL.md`, either folder. */
export const findSkillAgents = async (projectRoot: string, log: Pick<Log, "warn">): Promise<SkillAgent[]> => {
  const found: SkillAgent[] = []
  for (const folder of FOLDERS.map((name) => join(projectRoot, ".opencode", name))) {
    for (const entry of await list(folder, log)) {
      const path = entry.endsWith(".md") ? join(folder, entry) : join(folder, entry, "SKILL.md")
      const text = await read(path, log)
      const markdown = text === undefined ? undefined : parseFrontMatter(text)
      const agent = markdown && toSkillAgent(path, markdown)
      if (agent) found.push(agent)
      else if (text !== undefined && !markdown && /^subagent: *true/m.test(text))
        log.warn("a skill asks to be a subagent and its front matter cannot be used", { path })
    }
  }
  return found
}
