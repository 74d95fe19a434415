// @ts-check
/**
 * The program behind scripts/install; docs/installation.md tells the rules.
 *
 * All steps are planned first (install-plan.mjs), then shown, then executed. A manifest in the project lists the installed files.
 * It is written before the first file is changed, with the old lines and the new ones, so that a killed run can be repeated at
 * any point. JavaScript, since Node 20 reads no TypeScript.
 */
import * as fs from "node:fs"
import { homedir } from "node:os"
import { basename, dirname, join } from "node:path"
import { setImmediate } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { codeOf, exists, InstallError, isAllowed, isFile, isFolder, isRegular } from "./files.mjs"
import { quoted, showCounts, showDifferences, showPlan } from "./install-output.mjs"
import {
  createLocate,
  firstMessage,
  ignoredOptions,
  MANIFEST,
  PASS_POLICY,
  PROMPTS_BESIDE_OWN,
  planWork,
  renderManifest,
  SETTINGS,
  STATE,
} from "./install-plan.mjs"

/** @typedef {import("./install-plan.mjs").Plan} Plan */
/** @typedef {import("./install-plan.mjs").Mode} Mode */
/** @typedef {import("./install-plan.mjs").Choices} Choices */
/** @typedef {import("./install-plan.mjs").Order} Order */
/** @typedef {import("./install-plan.mjs").Work} Work */

/**
 * @typedef {object} Face what differs between scripts/install and the package's command
 * @property {string} command as messages name it
 * @property {(isAsking: boolean, order: Order) => Promise<Choices | undefined>} choose called by an installation; it may ask the user
 * @property {(work: Work) => Promise<string[]>} next commands for a user who has installed Baton
 */

/** @type {Face} */
let face = {
  command: "scripts/install",
  choose: async (_isAsking, { autoTask, passOver }) =>
    autoTask || passOver === false ? { autoTask: autoTask === true, passOver: passOver !== false } : undefined,
  next: async ({ source, project, isGlobal, plan }) => [
    `${quoted(`${source}/scripts/doctor`)} ${isGlobal ? "DIR" : quoted(project)}`,
    `cd ${isGlobal ? "DIR" : quoted(project)} && opencode`,
    ...(isGlobal ? [`prog and baton in your shell: eval "$(${quoted(plan.at(BATON))} env)"`] : []),
    ...firstMessage(plan),
  ],
}

const BATON = ".opencode/baton/bin/baton"
const AUDIT = ".opencode/pass-over-logs"

const USAGE = `Usage: scripts/install DIR | --global [--[no-]auto-task] [--[no-]pass-over] [--update] [--take-over] [--dry-run]
       scripts/install DIR | --global --uninstall [--purge] [--dry-run]

Copies Baton (.opencode/plugins, .opencode/baton, .opencode/pass-over.json, prompts) into the project DIR. A file you changed, or one that was
yours before, is never overwritten: the new version is put beside it as NAME.baton-new.

  --global     into OpenCode's global folder, for every project without a copy of its own
  --auto-task  the first message of a session becomes its task: "autoTask" in .opencode/baton.json
  --pass-over  agents may pass work to other agents: .opencode/pass-over.json; the first time it comes without the option.
               --no-auto-task and --no-pass-over switch them off, also where Baton is installed
  --update     only where Baton is installed; show how a new version differs from a file that you changed
  --take-over  the .opencode/baton that is there without a manifest is yours: Baton's files in it are
               replaced, others removed
  --dry-run    say what would be done, change nothing
  --uninstall  remove what was installed and is unchanged; name what is kept
  --purge      with --uninstall: also remove .opencode/state, where records not yet delivered may wait, and
               .opencode/pass-over-logs, the audit of what agents passed to each other
  --help       show this text

Exit status: 0 done or nothing to do, 1 could not do it, 2 the command line is wrong.`

// ---- The command line -------------------------------------------------------------------------------------------------

/** @param {string} message */
const misuse = (message) => new InstallError(`${message}\nTry: ${face.command} --help`, { exitCode: 2 })

const OPTIONS = /** @type {const} */ ({
  global: { type: "boolean", default: false },
  "auto-task": { type: "boolean" },
  "no-auto-task": { type: "boolean" },
  "pass-over": { type: "boolean" },
  "no-pass-over": { type: "boolean" },
  "dry-run": { type: "boolean", default: false },
  "take-over": { type: "boolean", default: false },
  uninstall: { type: "boolean", default: false },
  update: { type: "boolean", default: false },
  purge: { type: "boolean", default: false },
  help: { type: "boolean", short: "h" },
})

/** OpenCode's folder for all projects of the user. */
const globalFolder = () => join(process.env.XDG_CONFIG_HOME || join(homedir(), ".config"), "opencode")

/** @param {string[]} args @returns {Order | "help"} */
const parseCommandLine = (args) => {
  try {
    const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true })
    const { "dry-run": dry, "take-over": takeOver, uninstall, update: isUpdate, purge, help, global: isGlobal } = values
    const autoTask = values["no-auto-task"] ? false : values["auto-task"]
    const passOver = values["no-pass-over"] ? false : values["pass-over"]
    const [first, other] = positionals
    const dir = isGlobal ? globalFolder() : first
    if (help) return "help"
    if (other !== undefined) throw misuse(`expected one project folder, received two: '${dir}' and '${other}'`)
    if (isGlobal && first !== undefined) throw misuse(`--global takes no folder, received '${first}'`)
    if (dir === undefined) throw misuse(`which project? Expected: ${face.command} DIR`)
    if (dir === "") throw misuse("expected a project folder, received an empty name")
    if (purge && !uninstall) throw misuse("--purge goes with --uninstall")
    if (takeOver && uninstall) throw misuse("--take-over goes without --uninstall")
    const option = autoTask === undefined ? (passOver === undefined ? undefined : "--pass-over") : "--auto-task"
    if (option && (uninstall || isUpdate)) throw misuse(`${option} goes with an installation`)
    return {
      dir,
      isGlobal,
      autoTask,
      passOver,
      mode: uninstall ? "uninstall" : "install",
      dry,
      purge,
      isUpdate,
      takeOver,
    }
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

/** @param {Order} order @param {string} source @returns {string} the project's absolute folder */
const findProject = ({ dir, isGlobal }, source) => {
  if (isGlobal && !exists(dir)) return dir
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
const writeManifest = ({ version, plan }, lines) =>
  replaceFile(plan.at(MANIFEST), renderManifest({ version, lines, folders: plan.folders }))

/** Removes temporary files of a run that was killed while writing. @param {Work} work */
const removeTemporaries = ({ project, plan }) => {
  for (const path of [...plan.knownPaths, MANIFEST]) {
    const temporary = `${plan.at(path)}.baton-tmp`
    if (isFile(temporary)) attempt(`cannot write in ${project}. ${HALFWAY}`, () => fs.rmSync(temporary))
  }
}

/** Every step can be repeated after a kill. @param {Work} work */
const carryOut = async ({ plan }) => {
  for (const step of plan.steps) {
    // Signals are handled between two files.
    await setImmediate()
    if (step.action === "remove") remove(plan.at(step.path))
    else if (step.action !== "keep")
      replaceFile(plan.at(step.path), step.content.bytes, (step.content.mode & 0o777) | 0o200)
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
const removeEmptyFolders = ({ plan: { folders, at } }) => {
  for (const folder of [...folders].sort().reverse()) if (removeEmptyFolder(at(folder))) folders.delete(folder)
}

/** @param {Work} work */
const install = async (work) => {
  const { project, version, plan, dry, isGlobal, isUpdate } = work
  if (isUpdate && !plan.isKnown)
    throw new InstallError(`nothing to update: ${project} has no Baton that was installed (no ${plan.at(MANIFEST)})`)
  if (plan.steps.every(({ action }) => action === "keep")) {
    showPlan(work)
    if (!dry) removeTemporaries(work)
    if (!dry && !plan.isOnRecord) writeManifest(work, plan.record)
    console.log(`Nothing to do: Baton ${version} is in ${project} already.`)
    for (const line of ignoredOptions(work)) console.log(line)
    return showDifferences(work)
  }
  console.log(`Installing Baton ${version} into ${project}${dry ? " (dry run: nothing is changed)" : ""}`)
  showPlan(work)
  if (!dry) {
    const folder = dirname(plan.at(MANIFEST))
    attempt(`cannot create ${folder}. Make ${project} writable and try again`, () =>
      fs.mkdirSync(folder, { recursive: true }),
    )
    writeManifest(work, [...plan.knownLines, ...plan.record, ...plan.pending])
    removeTemporaries(work)
    await carryOut(work)
    removeEmptyFolders(work)
    writeManifest(work, plan.record)
  }
  showCounts(work, ["add", "update", "remove"])
  showDifferences(work)
  if (plan.prompts === PROMPTS_BESIDE_OWN && !isGlobal)
    console.log("Prompts: they are in .opencode/prompts; prompts is left to the project.")
  for (const line of ignoredOptions(work)) console.log(line)
  if (dry) return
  if (!isGlobal) console.log("Git: commit these files or ignore them, either is fine.")
  console.log(`Tasks: they are kept outside the project, in ${database}.`)
  if (!isUpdate) console.log(["Next:", ...(await face.next(work))].join("\n  "))
}

/** @param {string} folder @returns {boolean} true also if it cannot be read */
const holdsRecords = (folder) => {
  try {
    const names = fs.readdirSync(folder, { encoding: "utf8", recursive: true })
    return names.some((name) => ![".gitignore", ".mark"].includes(name) && isRegular(`${folder}/${name}`))
  } catch {
    return true
  }
}

/**
 * Removes a folder that Baton wrote at run time. If only its .gitignore is left, it is removed without `--purge` too.
 * @param {Work} work @param {string} folder @param {string} reason to keep it
 * @returns {boolean} whether it is or would be removed
 */
const clearFolder = ({ plan, purge, dry, isGlobal }, folder, reason) => {
  const path = plan.at(folder)
  if (isGlobal || !exists(path)) return false
  const isCleared = purge || (isFile(`${path}/.gitignore`) && !holdsRecords(path))
  console.log(isCleared ? `  remove  ${folder}` : `  keep    ${folder}: ${reason}; --purge removes them too`)
  if (isCleared && !dry) remove(path, { recursive: true })
  return isCleared
}

/** @param {Work} work */
const uninstall = async (work) => {
  const { project, plan, dry, purge } = work
  const manifest = plan.at(MANIFEST)
  if (!isFile(manifest) && !purge)
    return console.log(`Nothing to do: ${project} has no Baton installed by this script (no ${MANIFEST}).`)
  console.log(`Removing Baton from ${project}${dry ? " (dry run: nothing is changed)" : ""}`)
  showPlan(work)
  const isCleared = [
    clearFolder(work, STATE, "it holds run-time records, some perhaps not delivered yet"),
    clearFolder(work, AUDIT, "it holds the records of what agents passed to each other"),
  ].includes(true)
  const own = [SETTINGS, PASS_POLICY].filter((path) => exists(plan.at(path)) && !plan.knownPaths.includes(path))
  for (const path of own) console.log(`  keep    ${path}: it is yours`)
  if (!dry) {
    if (plan.pending.length > 0) writeManifest(work, [...plan.knownLines, ...plan.pending])
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
  const project = findProject(order, source)
  const isFirst = !exists(createLocate(project, order.isGlobal)(MANIFEST))
  const isInit = order.mode === "install" && !order.isUpdate
  const choices = isInit ? await face.choose(isFirst && !order.dry, order) : undefined
  const plan = planWork({ ...order, source, project, choices })
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

/**
 * @param {string[]} args of scripts/install
 * @param {Face} [other] the command that stands for them
 * @returns {Promise<number>} the exit code
 */
export const runInstaller = async (args, other = face) => {
  face = other
  try {
    await main(args)
    return 0
  } catch (error) {
    if (!(error instanceof InstallError || (error instanceof Error && codeOf(error)))) throw error
    console.error(`install: ${error.message}${error.cause instanceof Error ? `\n  (${error.cause.message})` : ""}`)
    return error instanceof InstallError ? error.exitCode : 1
  }
}

const [, program = ""] = process.argv
if (isFile(program) && fs.realpathSync(program) === fileURLToPath(import.meta.url))
  process.exitCode = await runInstaller(process.argv.slice(2))
