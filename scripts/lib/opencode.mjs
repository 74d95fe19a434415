// @ts-check
/** Tells which line of OpenCode a user has, since all of Baton needs 1.x and a new installation brings 2.x. */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { delimiter, isAbsolute, join } from "node:path"
import { isFile } from "./files.mjs"

const VERSION_DEADLINE_MS = 10_000

/** The package of the 1.x line; 2.x has another name on npm. */
const LINE_1 = "npm install -g opencode-ai@1"

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

/**
 * @returns {Promise<string[]>} lines for a user whose OpenCode does not have all of Baton; empty when it does, or does not say its version
 */
export const adviseOnOpenCode = async () => {
  const path = findOpenCode()
  if (path === undefined) return [`OpenCode: none is on PATH. Baton needs its 1.x line: ${LINE_1}`]
  const version = await askVersion(path)
  if (!/^v?(?:[2-9]|\d{2,})\./.test(version)) return []
  return [
    `OpenCode: ${path} is ${version}, on which Baton has no handoff, live state and passes yet.`,
    `  All of it needs the 1.x line: ${LINE_1}`,
  ]
}
