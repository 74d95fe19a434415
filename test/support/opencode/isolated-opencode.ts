import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** An environment that isolates OpenCode from the machine's home, settings, sessions and ledger. */
export const isolatedEnvironment = ({ home, directory }: { home: string; directory: string }) => ({
  PATH: process.env.PATH ?? "/usr/bin:/bin",
  HOME: home,
  PWD: directory,
  XDG_CONFIG_HOME: join(home, ".config"),
  XDG_DATA_HOME: join(home, ".local", "share"),
  XDG_STATE_HOME: join(home, ".local", "state"),
  XDG_CACHE_HOME: join(home, ".cache"),
  OPENCODE_DISABLE_MODELS_FETCH: "1",
  OPENCODE_DISABLE_AUTOUPDATE: "1",
  OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
  OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
  BATON_LEDGER: "embedded",
  // A copy is made in the background, where a test's folder may be gone already.
  BATON_COPIES: "off",
  PROG_DB: join(home, ".prog", "prog.db"),
  // OpenCode unpacks a library of 4 MB there at every start and leaves it behind.
  TMPDIR: home,
  // A start that lives for some seconds takes a tenth to a fifth less processor time without this compiler.
  BUN_JSC_useDFGJIT: "0",
  TERM: "dumb",
})

/** The opencode.json for a scripted model on loopback. Limits in tokens; small ones make it compact soon. */
export const scriptedConfig = (options: { modelURL: string; context?: number; output?: number }) => ({
  $schema: "https://opencode.ai/config.json",
  model: "scripted/model",
  small_model: "scripted/model",
  permission: "allow",
  autoupdate: false,
  share: "disabled",
  provider: {
    scripted: {
      npm: "@ai-sdk/openai-compatible",
      name: "Scripted",
      options: { baseURL: options.modelURL, apiKey: "none" },
      models: {
        model: {
          name: "Model",
          tool_call: true,
          limit: { context: options.context ?? 20_000, output: options.output ?? 2_000 },
        },
      },
    },
  },
})

/** Files that `linkDependencies` creates. */
export const PACKAGE_FILES = ["package.json", "package-lock.json", ".gitignore", "node_modules"] as const

/**
 * Adds the packages to a configuration folder that OpenCode would install at its first start, so that a run takes seconds and no
 * network. OpenCode checks the version in package.json (1.2.15) or the root dependencies of package-lock.json (1.18), and that
 * node_modules exists.
 *
 * @param version of OpenCode and of its plugin package
 * @param packages a node_modules folder that holds the plugin package
 */
export const linkDependencies = (folder: string, version: string, packages: string): void => {
  mkdirSync(folder, { recursive: true })
  const manifest = { dependencies: { "@opencode-ai/plugin": version } }
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest))
  writeFileSync(join(folder, "package-lock.json"), JSON.stringify({ lockfileVersion: 3, packages: { "": manifest } }))
  writeFileSync(join(folder, ".gitignore"), "node_modules\npackage.json\npackage-lock.json\n.gitignore\n")
  symlinkSync(packages, join(folder, "node_modules"))
}
