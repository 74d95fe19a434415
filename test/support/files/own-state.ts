import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { stateRoot } from "../../../.opencode/baton/host/project.ts"
import { MARK, markState } from "../../../.opencode/baton/host/state-mark.ts"
import { sealOfRecord } from "../../../.opencode/baton/ledger/outbox-store.ts"
import { sealRecords } from "../../../.opencode/baton/ledger/parked.ts"

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

/** Makes the state that a test wrote by hand this account's own, as the installer does with that of an earlier version. */
export const ownState = async (projectRoot: string): Promise<void> => {
  markState(stateRoot(projectRoot))
  await sealRecords(stateRoot(projectRoot))
}

/** Makes a folder in the state of the account whose OpenCode will find it. @returns its path */
export const makeOwnFolder = ({ directory, environment }: Project, name: string): string => {
  const root = stateRoot(directory)
  mkdirSync(join(root, name), { recursive: true })
  if (!existsSync(join(root, MARK))) withKeyOf(environment, () => markState(root))
  return join(root, name)
}

/** Renders a record of that account's outbox. */
export const renderOwnRecord = (
  { directory, environment }: Project,
  record: { readonly createdAt: string; readonly entry: object },
): string => {
  const seal = withKeyOf(environment, () => sealOfRecord(stateRoot(directory), record))
  return JSON.stringify({ ...record, seal })
}
