// @ts-check
/** Tells a user whose OpenCode is not one of those that Baton is run on, or lacks a part of Baton. */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { delimiter, isAbsolute, join } from "node:path"
import { isFile } from "./files.mjs"

const VERSION_DEADLINE_MS = 10_000

const TESTED = "1.2.15 to 1.18.33 and 2.0.15"
/** By the first number of a version: the oldest and the newest of it that the tests run on. */
const ENDS = new Map([
  [1, ["1.2.15", "1.18.33"]],
  [2, ["2.0.15", "2.0.15"]],
])

/** @returns {string | undefined} the program that `opencode` starts */
const findOpenCode = () => {
  // On Windows npm makes a script that starts the program.
  const names = process.platform === "win32" ? ["opencode.exe", "opencode.cmd"] : ["opencode"]
  const folders = (process.env.PATH ?? "").split(delimiter).filter(isAbsolute)
  const places = [...folders, join(homedir(), ".opencode", "bin")].flatMap((folder) =>
    names.map((name) => join(folder, name)),
  )
  return [process.env.BATON_OPENCODE, ...places].find((path) => path && isFile(path))
}

/** Asks in an empty folder: even for its version OpenCode writes its folders. @param {string} path @returns {Promise<string>} */
const askVersion = (path) =>
  new Promise((resolve) => {
    const scratch = mkdtempSync(join(tmpdir(), "baton-init-"))
    const xdg = ["CONFIG", "DATA", "CACHE", "STATE"].map((name) => [`XDG_${name}_HOME`, join(scratch, name)])
    const quiet = { OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_AUTOUPDATE: "1", TMPDIR: scratch }
    const env = { ...process.env, ...Object.fromEntries(xdg), ...quiet, PWD: scratch, BUN_BE_BUN: undefined }
    const shell = path.endsWith(".cmd")
    const options = { cwd: scratch, env, timeout: VERSION_DEADLINE_MS, shell }
    execFile(shell ? `"${path}"` : path, ["--version"], options, (_error, stdout) => {
      rmSync(scratch, { recursive: true, force: true, maxRetries: 5 })
      resolve(stdout.trim().split("\n").at(-1) ?? "")
    })
  })

/** @param {string} version `1.18.33`, or `opencode v2.0.15` @returns {number[]} */
const numbersOf = (version) => (/^(?:opencode )?v?(\d+)\.(\d+)\.(\d+)/.exec(version) ?? []).slice(1).map(Number)

/** @param {readonly number[]} version @param {string} other @returns {number} below 0 when it is older, above when it is newer */
const compare = (version, other) => {
  const differences = numbersOf(other).map((number, index) => (version[index] ?? 0) - number)
  return differences.find((difference) => difference !== 0) ?? 0
}

/**
 * @returns {Promise<string[]>} lines for a user whose OpenCode does not have all of Baton, or was not tried; empty when it does, or
 * does not say its version
 */
export const adviseOnOpenCode = async () => {
  const path = findOpenCode()
  if (path === undefined) return [`OpenCode: none is on PATH. Baton is run on ${TESTED}: https://opencode.ai/docs`]
  const version = numbersOf(await askVersion(path))
  const [major = 0] = version
  if (major === 0) return []
  const found = `OpenCode: ${path} is ${version.join(".")}`
  const [oldest, newest] = ENDS.get(major) ?? []
  if (oldest === undefined || newest === undefined || compare(version, oldest) < 0)
    return [`${found}; Baton is run on ${TESTED}.`]
  const lines = []
  if (compare(version, newest) > 0)
    lines.push(
      `${found}, newer than ${newest}, the newest that Baton was run on.`,
      "  If something fails, report it with this line and the lines with [baton. of OpenCode's log.",
    )
  if (major === 2)
    lines.push(`${lines.length > 0 ? " " : `${found};`} not there yet on OpenCode 2: handoff, live state, passes.`)
  return lines
}
