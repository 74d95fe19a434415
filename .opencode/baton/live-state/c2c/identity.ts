import { existsSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import { findExecutables } from "../../host/process.ts"

export type C2cIdentity = {
  readonly kind: "session"
  /** Absolute path, or the command that the environment names. */
  readonly program: string
  /** c2c's id of this session. */
  readonly sessionID: string
  /** Aliases of those that answer permissions and questions; empty if none are configured. */
  readonly supervisors: readonly string[]
}

/** This OpenCode's place in c2c, a message broker for agents. */
type C2c =
  | { readonly kind: "none" }
  /** c2c's own plugin is loaded here: it streams the state, delivers messages and asks supervisors itself. */
  | { readonly kind: "own-plugin"; readonly path: string }
  | C2cIdentity

type Environment = Readonly<Record<string, string | undefined>>

const PLUGIN_FILES = ["plugins/c2c.ts", "plugin/c2c.ts", "plugins/c2c.js", "plugin/c2c.js"]

const findOwnPlugin = (environment: Environment, folders: readonly string[]): string | undefined => {
  const home = environment.HOME || homedir()
  const global = join(environment.XDG_CONFIG_HOME || join(home, ".config"), "opencode")
  return [...folders.map((folder) => join(folder, ".opencode")), global]
    .flatMap((folder) => PLUGIN_FILES.map((file) => join(folder, file)))
    .find((path) => existsSync(path))
}

/** The names c2c knows: one alias, or a list separated by commas. */
const supervisorsOf = ({ C2C_PERMISSION_SUPERVISOR: one, C2C_SUPERVISORS: several }: Environment): string[] =>
  (one || several || "")
    .split(one ? "\n" : ",")
    .map((alias) => alias.trim())
    .filter((alias) => alias !== "")

/**
 * Reads from environment and files whether this OpenCode is one of c2c's sessions: `C2C_MCP_SESSION_ID` is set, and c2c is on
 * PATH or named by `C2C_CLI_COMMAND`.
 *
 * @param folders those whose `.opencode` OpenCode loads
 */
export const readC2c = async ({
  environment,
  folders,
}: {
  environment: Environment
  folders: readonly string[]
}): Promise<C2c> => {
  const { C2C_MCP_SESSION_ID: sessionID, C2C_CLI_COMMAND: command, PATH } = environment
  const program = command || findExecutables("c2c", PATH)[0]
  if (program === undefined) return { kind: "none" }
  const path = findOwnPlugin(environment, folders)
  if (path !== undefined) return { kind: "own-plugin", path }
  if (!sessionID) return { kind: "none" }
  return { kind: "session", program, sessionID, supervisors: supervisorsOf(environment) }
}
