import { spawnSync } from "node:child_process"
import { copyFileSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { REPOSITORY } from "../../test/support/opencode-binary.ts"
import type { TestProject } from "../../test/support/test-project.ts"
import { PEERS_MANIFEST, type PeerName } from "./subjects.ts"

const FOLDER = join(REPOSITORY, ".cache", "peers")
const STAMP = join(FOLDER, "installed.json")
const LOCK = "package-lock.json"
const INSTALL_DEADLINE_MS = 300_000
/** Of the package cache of 1.2.15, which throws away what another version has left. */
const CACHE_VERSION = "21"

/**
 * Installs the locked peers once, as OpenCode would: no script of theirs runs.
 *
 * @throws when npm cannot
 */
export const installPeers = (say: (text: string) => void): void => {
  const source = dirname(PEERS_MANIFEST)
  const lock = readFileSync(join(source, LOCK), "utf8")
  if (existsSync(STAMP) && readFileSync(STAMP, "utf8") === lock) return
  say("peers: installing them (about 600 MB on disk; once)")
  mkdirSync(FOLDER, { recursive: true })
  for (const file of ["package.json", LOCK, ".npmrc"]) copyFileSync(join(source, file), join(FOLDER, file))
  // Not `npm ci`, which insists on the builds for other platforms too: a registry need not have them.
  const args = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
  const { status, stderr, error } = spawnSync("npm", args, {
    cwd: FOLDER,
    encoding: "utf8",
    timeout: INSTALL_DEADLINE_MS,
  })
  if (status !== 0)
    throw new Error(`npm install of the peers exited with ${status}: ${stderr.slice(0, 500)}`, { cause: error })
  writeFileSync(STAMP, lock)
}

/**
 * Puts an installed peer where OpenCode looks for a plugin that opencode.json names, so that it does not install it
 * again: `packages/NAME@VERSION` of its cache on 1.18, the one `node_modules` there on 1.2.15.
 */
export const linkPeer = ({ environment }: TestProject, name: PeerName, version: string): void => {
  const cache = join(environment.XDG_CACHE_HOME ?? "", "opencode")
  const folder = join(cache, "packages", `${name}@${version}`)
  mkdirSync(dirname(folder), { recursive: true })
  symlinkSync(FOLDER, folder)
  symlinkSync(join(FOLDER, "node_modules"), join(cache, "node_modules"))
  writeFileSync(join(cache, "package.json"), JSON.stringify({ dependencies: { [name]: version } }))
  writeFileSync(join(cache, "version"), CACHE_VERSION)
}
