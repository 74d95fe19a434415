import { join } from "node:path"

/** An environment in which OpenCode sees and touches nothing of the machine's own: home, settings, sessions, ledger. */
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
  PROG_DB: join(home, ".prog", "prog.db"),
  // OpenCode unpacks a library of 4 MB there at every start and leaves it behind.
  TMPDIR: home,
  TERM: "dumb",
})

/** What opencode.json says for a scripted model on loopback. Limits in tokens; small ones make it compact soon. */
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
