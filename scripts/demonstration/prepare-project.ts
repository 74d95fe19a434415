import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { linkDependencies, scriptedConfig } from "../../test/support/isolated-opencode.ts"
import { type ChildResult, runChild } from "./child-process.ts"
import type { DemoOptions } from "./options.ts"
import { PROJECT_FILES } from "./slug-project.ts"
import type { Workspace } from "./workspace.ts"

/** Small enough to compact a few times on a small task, large enough for OpenCode's own prompt and tools. */
const OWN_MODEL_LIMIT = { context: 24_000, output: 4_000 }

/** Lowers the limit of one model; everything else about it stays as the user has it. */
const ownModelConfig = (model: string) => {
  const slash = model.indexOf("/")
  const [provider, name] = [model.slice(0, slash), model.slice(slash + 1)]
  return {
    $schema: "https://opencode.ai/config.json",
    share: "disabled",
    autoupdate: false,
    // A question would wait for an answer that nobody gives.
    permission: { edit: "allow", bash: "allow", external_directory: "deny", task: "deny" },
    provider: { [provider]: { models: { [name]: { limit: OWN_MODEL_LIMIT } } } },
  }
}

const pluginVersion = (packages: string): string => {
  const manifest: unknown = JSON.parse(readFileSync(join(packages, "@opencode-ai", "plugin", "package.json"), "utf8"))
  return String(Reflect.get(Object(manifest), "version"))
}

const GIT_SETTINGS = [
  ["user.name", "Demo"],
  ["user.email", "demo@example.invalid"],
  ["commit.gpgsign", "false"],
] as const

/**
 * Writes the project, puts it under git where git is there, and installs Baton as a user would.
 *
 * @param modelURL the scripted model's, or undefined for a model of the user's own
 */
export const prepareProject = async (
  options: DemoOptions,
  { directory, home, isolated }: Workspace,
  modelURL: string | undefined,
  signal: AbortSignal,
): Promise<void> => {
  const run = async (...argv: [string, ...string[]]): Promise<ChildResult> => {
    const result = await runChild(argv, { cwd: directory, environment: isolated, signal })
    if (result.exitCode !== 0) throw new Error(`${argv.join(" ")} exited ${result.exitCode}: ${result.stderr}`)
    return result
  }
  for (const [path, text] of Object.entries(PROJECT_FILES)) writeFileSync(join(directory, path), text)
  const config = options.model ? ownModelConfig(options.model) : modelURL ? scriptedConfig({ modelURL }) : {}
  writeFileSync(join(directory, "opencode.json"), `${JSON.stringify(config, null, 2)}\n`)
  const inGit = await run("git", "init", "-q", "-b", "main").then(
    () => true,
    (error: unknown) => {
      signal.throwIfAborted()
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return false
      throw error
    },
  )
  if (inGit) {
    for (const [name, value] of GIT_SETTINGS) await run("git", "config", name, value)
    await run("git", "add", "-A")
    await run("git", "commit", "-q", "-m", "Begin")
  }
  if (options.withBaton) await run(join(options.repository, "scripts", "install"), directory)
  // Another version of OpenCode would replace what the link leads to; it fetches its own.
  const folders = [
    ...(options.opencode === options.runtime ? [join(directory, ".opencode")] : []),
    ...(options.model ? [] : [join(home, ".config", "opencode")]),
  ]
  for (const folder of folders) linkDependencies(folder, pluginVersion(options.packages), options.packages)
}
