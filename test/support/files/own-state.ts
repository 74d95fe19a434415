import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { stateRoot } from "../../../.opencode/baton/host/project.ts"
import { MARK, markState } from "../../../.opencode/baton/host/state-mark.ts"

type Environment = Readonly<Record<string, string | undefined>>
type Project = { readonly directory: string; readonly environment: Environment }

const KEY_PLACES = ["BATON_STATE_KEY", "XDG_STATE_HOME", "HOME"] as const

const withKeyOf = <T>(environment: Environment, act: () => T): T => {
  const set = (name: string, value: string | undefined): void => {
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
  }
  const before = KEY_PLACES.map((name) => [name, process.env[name]] as const)
  try {
    for (const name of KEY_PLACES) set(name, environment[name])
    return act()
  } finally {
    for (const [name, value] of before) set(name, value)
  }
}

/** Makes a folder in the state of the account whose OpenCode will find it. @returns its path */
export const makeOwnFolder = ({ directory, environment }: Project, name: string): string => {
  const root = stateRoot(directory)
  mkdirSync(join(root, name), { recursive: true })
  if (!existsSync(join(root, MARK))) withKeyOf(environment, () => markState(root))
  return join(root, name)
}
