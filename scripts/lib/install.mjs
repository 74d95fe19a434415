// @ts-check
/**
 * The program behind scripts/install; docs/installation.md tells the rules.
 *
 * All steps are planned first (install-plan.mjs), then shown, then executed. A manifest in the project lists the installed files.
 * It is written before the first file is changed, with the old lines and the new ones, so that a killed run can be repeated at
 * any point. JavaScript, since Node 20 reads no TypeScript.
 */
import * as fs from "node:fs"
import { basename, dirname, join } from "node:path"
import { setImmediate } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import {
  codeOf,
  exists,
  InstallError,
  isAllowed,
  isFile,
  isFolder,
  isRegular,
  MANIFEST,
  PASS_POLICY,
  PROMPTS_BESIDE_OWN,
  planWork,
  renderManifest,
  STATE,
} from "./install-plan.mjs"

/** @typedef {import("./install-plan.mjs").Plan} Plan */
/** @typedef {import("./install-plan.mjs").Step} Step */
/** @typedef {{ dir: string, mode: "install" | "uninstall", dry: boolean, purge: boolean, takeOver: boolean }} Order */
/** @typedef {Order & { plan: Plan, source: string, project: string, version: string }} Work */

const AUDIT = ".opencode/pass-over-logs"
const SETTINGS = [".opencode/baton.json", PASS_POLICY]

const USAGE = `Usage: scripts/install DIR [--take-over] [--dry-run]
       scripts/install DIR --uninstall [--purge] [--dry-run]

Copies Baton (.opencode/plugins, .opencode/baton, .opencode/pass-over.json, prompts) into the project DIR. A file you changed, or one that was
yours before, is never overwritten: the new version is put beside it as NAME.baton-new.

  --take-over  the .opencode/baton, .opencode/state and writer that are there without a manifest are yours: files of
               .opencode/baton are replaced, others in it removed
  --dry-run    say what would be done, change nothing
  --uninstall  remove what was installed and is unchanged; name what is kept
  --purge      with --uninstall: also remove .opencode/state, where records not yet delivered may wait, and
               .opencode/pass-over-logs, the audit of what agents passed to each other
  --help       show this text

Exit status: 0 done or nothing to do, 1 could not do it, 2 the command line is wrong.`

// ---- The command line -------------------------------------------------------------------------------------------------

/** @param {string} message */
const misuse = (message) => new InstallError(`${message}\nTry: scripts/install --help`, { exitCode: 2 })

const OPTIONS = /** @type {const} */ ({
  "dry-run": { type: "boolean", default: false },
  "take-over": { type: "boolean", default: false },
  uninstall: { type: "boolean", default: false },
  purge: { type: "boolean", default: false },
  help: { type: "boolean", short: "h" },
})

/** @param {string[]} args @returns {Order | "help"} */
const parseCommandLine = (args) => {
  try {
    const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true })
    const { "dry-run": dry, "take-over": takeOver, uninstall, purge, help } = values
    const [dir, other] = positionals
    if (help) return "help"
    if (other !== undefined) throw misuse(`expected one project folder, received two: '${dir}' and '${other}'`)
    if (dir === undefined) throw misuse("which project? Expected: scripts/install DIR")
    if (dir === "") throw misuse("expected a project folder, received an empty name")
    if (purge && !uninstall) throw misuse("--purge goes with --uninstall")
    if (takeOver && uninstall) throw misuse("--take-over goes without --uninstall")
    return { dir, takeOver, mode: uninstall ? "uninstall" : "install", dry, purge }
  } catch (error) {
    if (error instanceof InstallError || !(error instanceof Error)) throw error
    throw misuse(error.message.replace(/\. To specify.*/s, ""))
  }
}

/** @returns {{ source: string, version: string }} the checkout that this file lies in */
const findCheckout = () => {
  const source = fs.realpathSync(join(dirname(fileURLToPath(import.meta.url)), "..", ".."))
  if (!isFolder(`${source}/.opencode/baton`))
    throw new InstallError(`no .opencode/baton in ${source}: run this script from a checkout of Baton`)
  const description = `${source}/package.json`
  const text = isFile(description) ? fs.readFileSync(description, "utf8") : ""
  return { source, version: /^ {2}"version": "(.*)",$/m.exec(text)?.[1] || "of unknown version" }
}

/** @param {string} dir as given @param {string} source @returns {string} the project's absolute folder */
const findProject = (dir, source) => {
  if (!exists(dir)) throw misuse(`no such folder: '${dir}'. Create it first, or name the folder of an existing project`)
  if (!isFolder(dir)) throw misuse(`not a folder: '${dir}'. Name the project's folder`)
  const project = fs.realpathSync(dir)
  if (!isAllowed(project, fs.constants.X_OK)) throw new InstallError(`cannot enter '${dir}': check its permissions`)
  if (project === source)
    throw misuse(`'${dir}' is the checkout of Baton itself: just start opencode in it, nothing needs installing`)
  if (basename(project) === ".opencode")
    throw misuse(`'${dir}' is an .opencode folder: name the project that holds it, ${dirname(project)}`)
  return project
}

// ---- Output -----------------------------------------------------------------------------------------------------------

/** @param {string} word @returns {string} quoted for a shell if needed */
const quoted = (word) => (/[^A-Za-z0-9_./-]/.test(word) ? `'${word.replaceAll("'", "'\\''")}'` : word)

/** Names no files for a first installation or an uninstall, which change all: the last line counts them. @param {Work} work */
const showPlan = ({ plan, mode, dry }) => {
  const isNamed = dry || (plan.isKnown && mode === "install")
  for (const step of plan.steps) {
    if (step.action === "keep") console.log(`  keep    ${step.path}: ${step.reason}`)
    else if (isNamed) console.log(`  ${step.action.padEnd(7)} ${step.path}`)
  }
}

/** @param {Work} work @param {readonly ("add" | "update" | "remove")[]} actions */
const showCounts = ({ plan, dry }, actions) => {
  const done = { add: "added", update: "updated", remove: "removed" }
  const count = (/** @type {Step["action"]} */ action) => plan.steps.filter((step) => step.action === action).length
  const counts = actions.map((action) => `${count(action)} ${dry ? "would be " : ""}${done[action]}`)
  console.log(`Files: ${counts.join(", ")}, ${count("keep")} kept as they are.`)
}

/** The file in which prog, real or embedded, keeps the tasks. */
const database = process.env.PROG_DB || "~/.prog/prog.db"

// ---- Execution --------------------------------------------------------------------------------------------------------

const HALFWAY = "What was done is on record: mend the cause and run the same command again"

/** @template T @param {string} failure the error message @param {() => T} act @returns {T} */
const attempt = (failure, act) => {
  try {
    return act()
  } catch (cause) {
    throw new InstallError(failure, { cause })
  }
}

/** Replaces a file by rename. The temporary name is fixed, so that the next run finds it. */
const replaceFile = (/** @type {string} */ path, /** @type {Buffer | string} */ content, mode = 0o666) => {
  const temporary = `${path}.baton-tmp`
  attempt(`cannot write ${path}. ${HALFWAY}`, () => {
    fs.mkdirSync(dirname(path), { recursive: true })
    fs.rmSync(temporary, { force: true })
    fs.writeFileSync(temporary, content, { flag: "wx", mode })
    fs.renameSync(temporary, path)
  })
}

/** @param {string} path @param {{ recursive?: boolean }} [options] */
const remove = (path, options) =>
  attempt(`cannot remove ${path}. ${HALFWAY}`, () => fs.rmSync(path, { force: true, ...options }))

/** @param {Work} work @param {readonly string[]} lines of the files */
const writeManifest = ({ project, version, plan }, lines) =>
  replaceFile(`${project}/${MANIFEST}`, renderManifest({ version, lines, folders: plan.folders }))

/** Removes temporary files of a run that was killed while writing. @param {Work} work */
const removeTemporaries = ({ project, plan }) => {
  for (const path of [...plan.knownPaths, MANIFEST]) {
    const temporary = `${project}/${path}.baton-tmp`
    if (isFile(temporary)) attempt(`cannot write in ${project}. ${HALFWAY}`, () => fs.rmSync(temporary))
  }
}

/** Every step can be repeated after a kill. @param {Work} work */
const carryOut = async ({ project, plan }) => {
  for (const step of plan.steps) {
    // Signals are handled between two files.
    await setImmediate()
    if (step.action === "remove") remove(`${project}/${step.path}`)
    else if (step.action !== "keep")
      replaceFile(`${project}/${step.path}`, step.content.bytes, (step.content.mode & 0o777) | 0o200)
  }
}

/** @param {string} path @returns {boolean} false when it is not empty or not there */
const removeEmptyFolder = (path) => {
  try {
    fs.rmdirSync(path)
    return true
  } catch {
    return false
  }
}

/** Removes the folders that this program created, deepest first. @param {Work} work */
const removeEmptyFolders = ({ project, plan: { folders } }) => {
  for (const folder of [...folders].sort().reverse())
    if (removeEmptyFolder(`${project}/${folder}`)) folders.delete(folder)
}

/** @param {Work} work */
const install = async (work) => {
  const { source, project, version, plan, dry } = work
  if (plan.steps.every(({ action }) => action === "keep")) {
    showPlan(work)
    const isOnRecord = [...plan.record].sort().join("\n") === plan.knownLines.join("\n")
    if (!dry) removeTemporaries(work)
    if (!dry && !isOnRecord) writeManifest(work, plan.record)
    return console.log(`Nothing to do: Baton ${version} is in ${project} already.`)
  }
  console.log(`Installing Baton ${version} into ${project}${dry ? " (dry run: nothing is changed)" : ""}`)
  showPlan(work)
  if (!dry) {
    const folder = dirname(`${project}/${MANIFEST}`)
    attempt(`cannot create ${folder}. Make ${project} writable and try again`, () =>
      fs.mkdirSync(folder, { recursive: true }),
    )
    writeManifest(work, [...plan.knownLines, ...plan.record])
    removeTemporaries(work)
    await carryOut(work)
    removeEmptyFolders(work)
    writeManifest(work, plan.record)
  }
  showCounts(work, ["add", "update", "remove"])
  if (plan.prompts === PROMPTS_BESIDE_OWN)
    console.log("Prompts: they are in .opencode/prompts; prompts is left to the project.")
  if (dry) return
  console.log("Git: commit these files or ignore them, either is fine.")
  console.log(`Tasks: they are kept outside the project, in ${database}.`)
  console.log(`Next:\n  ${quoted(`${source}/scripts/doctor`)} ${quoted(project)}\n  cd ${quoted(project)} && opencode`)
}

/** @param {string} folder @returns {boolean} true also if it cannot be read */
const holdsRecords = (folder) => {
  try {
    const names = fs.readdirSync(folder, { encoding: "utf8", recursive: true })
    return names.some((name) => name !== ".gitignore" && isRegular(`${folder}/${name}`))
  } catch {
    return true
  }
}

/**
 * Removes a folder that Baton wrote at run time. If only its .gitignore is left, it is removed without `--purge` too.
 * @param {Work} work @param {string} folder @param {string} reason to keep it
 * @returns {boolean} whether it is or would be removed
 */
const clearFolder = ({ project, purge, dry }, folder, reason) => {
  const path = `${project}/${folder}`
  if (!exists(path)) return false
  const isCleared = purge || (isFile(`${path}/.gitignore`) && !holdsRecords(path))
  console.log(isCleared ? `  remove  ${folder}` : `  keep    ${folder}: ${reason}; --purge removes them too`)
  if (isCleared && !dry) remove(path, { recursive: true })
  return isCleared
}

/** @param {Work} work */
const uninstall = async (work) => {
  const { project, plan, dry, purge } = work
  const manifest = `${project}/${MANIFEST}`
  if (!isFile(manifest) && !purge)
    return console.log(`Nothing to do: ${project} has no Baton installed by this script (no ${MANIFEST}).`)
  console.log(`Removing Baton from ${project}${dry ? " (dry run: nothing is changed)" : ""}`)
  showPlan(work)
  const isCleared = [
    clearFolder(work, STATE, "it holds run-time records, some perhaps not delivered yet"),
    clearFolder(work, AUDIT, "it holds the records of what agents passed to each other"),
  ].includes(true)
  const own = SETTINGS.filter((path) => exists(`${project}/${path}`) && !plan.knownPaths.includes(path))
  for (const path of own) console.log(`  keep    ${path}: it is yours`)
  if (!dry) {
    removeTemporaries(work)
    await carryOut(work)
    if (isCleared || purge) plan.folders.add(".opencode")
    removeEmptyFolders(work)
    // The manifest goes last, so that a killed run still knows what to remove.
    remove(manifest)
    removeEmptyFolder(dirname(manifest))
    removeEmptyFolders(work)
  }
  showCounts(work, ["remove"])
  console.log(`Tasks: they stay in ${database}. Read them with prog (https://github.com/baiirun/prog), with any SQLite tool,
or with .opencode/baton/bin/prog list in another project that has Baton.`)
}

/** @param {string[]} args */
const main = async (args) => {
  const order = parseCommandLine(args)
  if (order === "help") return console.log(USAGE)
  const { source, version } = findCheckout()
  const project = findProject(order.dir, source)
  const plan = planWork({ ...order, source, project })
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      console.error("\ninstall: stopped. Run the same command again to finish.")
      process.exit(130)
    })
  }
  await (order.mode === "install" ? install : uninstall)({ ...order, plan, source, project, version })
}

// With `head` the pipe closes early; the work must go on.
process.stdout.on("error", (error) => {
  if (codeOf(error) !== "EPIPE") throw error
})

try {
  await main(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof InstallError || (error instanceof Error && codeOf(error)))) throw error
  console.error(`install: ${error.message}${error.cause instanceof Error ? `\n  (${error.cause.message})` : ""}`)
  process.exitCode = error instanceof InstallError ? error.exitCode : 1
}
