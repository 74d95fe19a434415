// @ts-check
// Output of the installer.
import { readFileSync } from "node:fs"
import { renderDifference } from "./difference.mjs"
import { exists, isRegular } from "./files.mjs"

/** @typedef {import("./install-plan.mjs").Step} Step */
/** @typedef {import("./install-plan.mjs").Work} Work */

/** @param {string} word @returns {string} quoted for a shell if needed */
export const quoted = (word) => (/[^A-Za-z0-9_./-]/.test(word) ? `'${word.replaceAll("'", "'\\''")}'` : word)

/** A screen has room for these of each folder; of more, it shows their number. */
const NAMED_FILES = 5

/** `.opencode/baton`, `prompts`; "" for a file beside them. @param {string} path */
const folderOf = (path) => /^(?:\.opencode\/)?[^/]+(?=\/)/.exec(path)?.[0] ?? ""

/** Names no files for a first installation or an uninstall, which change all: the last line counts them. @param {Work} work */
export const showPlan = ({ plan, mode, dry }) => {
  /** @type {Map<string, string[]>} paths by action and folder */
  const groups = new Map()
  for (const step of plan.steps) {
    const group = `  ${step.action.padEnd(7)} ${folderOf(step.path)}`
    if (step.action === "keep") console.log(`  keep    ${step.path}: ${step.reason}`)
    else groups.set(group, [...(groups.get(group) ?? []), `  ${step.action.padEnd(7)} ${step.path}`])
  }
  if (!dry && (!plan.isKnown || mode !== "install")) return
  for (const [group, lines] of groups) {
    if (lines.length > NAMED_FILES) console.log(`${group}/ (${lines.length} files)`)
    else console.log(lines.join("\n"))
  }
}

/** @param {Work} work @param {readonly ("add" | "update" | "remove")[]} actions */
export const showCounts = ({ plan, dry }, actions) => {
  const done = { add: "added", update: "updated", remove: "removed" }
  const count = (/** @type {Step["action"]} */ action) => plan.steps.filter((step) => step.action === action).length
  const counts = actions.map((action) => `${count(action)} ${dry ? "would be " : ""}${done[action]}`)
  console.log(`Files: ${counts.join(", ")}, ${count("keep")} kept as they are.`)
}

/** Shows, at an update, how each new version differs from the user's file that it lies beside. @param {Work} work */
export const showDifferences = ({ plan, isUpdate }) => {
  for (const line of isUpdate ? plan.record : []) {
    const [, path = ""] = /\t([^\t]+)\.baton-new$/.exec(line) ?? []
    if (path === "" || !isRegular(plan.at(path))) continue
    const beside = `${path}.baton-new`
    const step = plan.steps.find((one) => one.path === beside)
    const isMerged = step === undefined && !exists(plan.at(beside))
    if (isMerged) continue
    const newer = step && "content" in step ? step.content.bytes : readFileSync(plan.at(beside))
    console.log(`\n${path}: yours (-), the new version (+)`)
    for (const shown of renderDifference(readFileSync(plan.at(path), "utf8"), newer.toString()))
      console.log(`  ${shown}`)
  }
}
