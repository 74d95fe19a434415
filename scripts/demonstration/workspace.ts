import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { isolatedEnvironment } from "../../test/support/isolated-opencode.ts"
import type { DemoOptions } from "./options.ts"

export type Workspace = {
  /** Everything the demo writes lies below this folder. */
  root: string
  /** The project that the agent works in. */
  directory: string
  home: string
  /** For OpenCode and the agent's shell. */
  environment: Record<string, string>
  /** For the demo's own calls of git, prog and the installer: never the user's home. */
  isolated: Record<string, string>
  /** Takes away everything the demo made, a folder of the user's that was there before excepted. */
  remove(): void
}

/** Set for the demo's own process; OpenCode must not see them. */
const DEMO_VARIABLE = /^(?:BUN_|DEMO_|BATON_|PROG_|FORCE_COLOR$)/

const usersEnvironment = (): Record<string, string> =>
  Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      value === undefined || DEMO_VARIABLE.test(name) ? [] : [[name, value]],
    ),
  )

/**
 * The folders of one demo and the environments to run in.
 *
 * With a model of the user's own, OpenCode runs in the user's environment, since keys and settings are there; only the
 * ledger stays here.
 */
export const createWorkspace = (options: DemoOptions): Workspace => {
  const isOurs = !options.keep || !existsSync(options.keep)
  if (options.keep) mkdirSync(options.keep, { recursive: true })
  const root = realpathSync(options.keep ?? mkdtempSync(join(tmpdir(), "baton-demo-")))
  const directory = join(root, "project")
  const home = join(root, "home")
  for (const folder of [directory, home]) mkdirSync(folder, { recursive: true })
  const isolated: Record<string, string> = {
    ...isolatedEnvironment({ home, directory }),
    BATON_RUNTIME: options.runtime,
  }
  const ledger = { PWD: directory, BATON_LEDGER: "embedded", PROG_DB: isolated.PROG_DB ?? "" }
  const environment = options.model ? { ...usersEnvironment(), ...ledger } : isolated
  // Without the bundle nobody puts prog on the agent's PATH; the comparison is about the task, not about a missing tool.
  const plain = {
    ...environment,
    PATH: [join(options.repository, ".opencode", "baton", "bin"), environment.PATH].join(delimiter),
  }
  return {
    root,
    directory,
    home,
    environment: options.withBaton ? environment : plain,
    isolated,
    remove: () => {
      for (const folder of isOurs ? [root] : [directory, home]) rmSync(folder, { recursive: true, force: true })
    },
  }
}
