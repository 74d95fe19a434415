// @ts-check
/**
 * Part of scripts/install: finds the files of earlier installations and plans a step for each file. Only reads.
 *
 * Paths of the bundle are relative and have slashes, as in the manifest, on every system.
 */
import { createHash } from "node:crypto"
import { constants, lstatSync, readdirSync, readlinkSync, statSync } from "node:fs"
import { posix } from "node:path"
import { exists, InstallError, isAllowed, isFile, isFolder, isRegular, lookWith, read } from "./files.mjs"
import { isOfZod, zodFiles } from "./zod.mjs"

export const MANIFEST = ".opencode/baton/.manifest"
export const STATE = ".opencode/state"
/** Ends the name of a new version beside the user's file. */
const BESIDE = ".baton-new"

/** @typedef {{ bytes: Buffer, mode: number }} Content a file of the checkout, with its permissions */
/**
 * @typedef {{ action: "add" | "update", path: string, content: Content }
 *   | { action: "remove", path: string }
 *   | { action: "keep", path: string, reason: string }} Step
 */
/**
 * @typedef {object} Plan
 * @property {Step[]} steps
 * @property {string[]} record the manifest's lines of files after all steps
 * @property {Set<string>} folders created by this program, now or earlier
 * @property {string[]} pending lines of files that only a first time adds, for the manifest until they are there, or gone with it
 * @property {boolean} isOnRecord the manifest has the lines of `record`, and no others
 * @property {string[]} knownLines of files, as the manifest has them now
 * @property {string[]} knownPaths of those lines
 * @property {boolean} isKnown the manifest lists something
 * @property {string} prompts the folder for the prompts
 * @property {Locate} at
 */

/** @typedef {"install" | "uninstall"} Mode */
/** @typedef {(path: string) => string} Locate the file or folder of a path of the manifest */
/** @typedef {{ autoTask: boolean | undefined, passOver: boolean | undefined }} Options of the command line; undefined for one not given */
/** @typedef {{ autoTask: boolean, passOver: boolean }} Choices of a user; undefined for the script and for an update, which ask nothing */
/** @typedef {{ dir: string, isGlobal: boolean, mode: Mode, dry: boolean, purge: boolean, isUpdate: boolean, takeOver: boolean, autoTask: boolean | undefined, passOver: boolean | undefined }} Order the last two: as an option says */
/** @typedef {Order & { plan: Plan, source: string, project: string, version: string }} Work */

/**
 * OpenCode's global folder is itself what `.opencode` is in a project.
 * @param {string} project @param {boolean} isGlobal @returns {Locate}
 */
export const createLocate = (project, isGlobal) => (path) =>
  isGlobal ? posix.join(project, path.replace(/^\.opencode\/?/, "")) : `${project}/${path}`

// ---- The manifest -----------------------------------------------------------------------------------------------------

/** A file's line in the manifest: SHA-256, size and path. @param {Buffer} bytes @param {string} path */
const lineOf = (bytes, path) => `${createHash("sha256").update(bytes).digest("hex")}\t${bytes.length}\t${path}`

/**
 * Switches passing work over on by being there. So a changed or deleted one is the user's decision, with which an upgrade does not
 * interfere.
 */
export const PASS_POLICY = ".opencode/pass-over.json"
/** Written by a first installation that was asked for automatic tasks. It is the user's from then on, like the policy. */
export const SETTINGS = ".opencode/baton.json"
const settingsText = (/** @type {boolean} */ autoTask) => `{\n  "autoTask": ${autoTask}\n}\n`
const AUTO_TASK = /("autoTask"\s*:\s*)(true|false)/g
/** The settings that are there now switch automatic tasks on. @param {Locate} at */
const hasAutoTask = (at) => {
  const text = isFile(at(SETTINGS)) ? read(at(SETTINGS)).toString() : ""
  try {
    return JSON.parse(text).autoTask === true
  } catch {
    // None, none that count, or one with comments.
    const found = [...text.matchAll(AUTO_TASK)]
    return found.length === 1 && found[0]?.[2] === "true"
  }
}

/** The user's settings with the option's value in its place, where one stands there. @param {string} text @param {boolean} autoTask */
const withAutoTask = (text, autoTask) =>
  text.match(AUTO_TASK)?.length === 1 ? text.replace(AUTO_TASK, `$1${autoTask}`) : text

/** The next step of a user whose first message becomes a task. @param {Plan} plan */
export const firstMessage = (plan) =>
  hasAutoTask(plan.at) ? ["say what is to be done: your first message becomes a task, and Baton keeps it"] : []

/**
 * Names the options that could not be followed, since the file is the user's.
 * @param {{ plan: Plan, dry: boolean } & Options} work
 */
export const ignoredOptions = ({ plan: { at }, autoTask, passOver, dry }) => {
  /** @type {string[]} */
  const ignored = []
  if (dry) return ignored
  if (autoTask !== undefined && hasAutoTask(at) !== autoTask) {
    const option = autoTask ? "--auto-task" : "--no-auto-task"
    ignored.push(`Settings: ${option} changes nothing, they are yours. Set "autoTask": ${autoTask} in ${at(SETTINGS)}`)
  }
  if (passOver === false && exists(at(PASS_POLICY)))
    ignored.push(`Passes: --no-pass-over changes nothing, the policy is yours. Delete ${at(PASS_POLICY)} to have none`)
  return ignored
}

/** Beside the line of a decision that a run is about to add or remove. On record without it and not there: deleted, or never wanted. */
const pendingLine = (/** @type {string} */ path) => `0\t-\t${path}`

/** Only paths that this program could have written, so that a damaged manifest affects no other files. */
const LINE =
  /^[0-9a-z]+\t[0-9-]+\t(?:\.opencode|\.opencode\/(?:(?:pass-over|baton)\.json|\.npmignore(?:\.baton-new)?)|(?:\.opencode\/(?:plugins|baton|prompts)|prompts)(?:\/.*)?)$/
const FOLDER = "dir\t"

/** @param {string} line */
const pathIn = (line) => line.split("\t")[2] ?? ""

/** @param {Locate} at */
const readManifest = (at) => {
  const path = at(MANIFEST)
  const lines = isFile(path) ? read(path).toString().split(/\r?\n/) : []
  return lines.filter((line) => LINE.test(line) && !line.includes("/.."))
}

/**
 * @param {{ version: string, lines: readonly string[], folders: Iterable<string> }} content
 * @returns {string} the manifest's text
 */
export const renderManifest = ({ version, lines, folders }) =>
  [
    `# What scripts/install put here: SHA-256, size, path. Baton ${version}`,
    ...[...new Set(lines)].sort(),
    ...[...folders].sort().map((folder) => `${FOLDER}-\t${folder}`),
    "",
  ].join("\n")

// ---- Files of the bundle: by folder, not by a list, without tests and temporary files ---------------------------------

/** @param {string} name */
const isShipped = (name) => !/^\.|\.test\.ts$|\.baton-new$|~$/.test(name)

/** @param {string} source @param {string} folder @returns {string[]} */
const filesBelow = (source, folder) => {
  if (!isFolder(`${source}/${folder}`)) return []
  return readdirSync(`${source}/${folder}`, { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return entry.name === "node_modules" ? [] : filesBelow(source, path)
    return entry.isFile() && isShipped(entry.name) ? [path] : []
  })
}

/** @typedef {Map<string, Content>} Bundle by the path in a checkout */

/** @param {string} source @returns {Bundle} */
const bundleOf = (source) => {
  const plugins = filesBelow(source, ".opencode/plugins").filter((path) => /^[^/]+\/[^/]+\/[^/]+\.ts$/.test(path))
  const shared = [...filesBelow(source, ".opencode/baton"), ...filesBelow(source, PROMPTS)]
  if (shared.length === 0) throw new InstallError(`no files in ${source}/.opencode/baton: the checkout is incomplete`)
  const policy = isFile(`${source}/${PASS_POLICY}`) ? [PASS_POLICY] : []
  /** @type {Bundle} */
  const bundle = new Map()
  for (const path of [...policy, ...plugins.sort(), ...shared.sort()]) {
    const from = `${source}/${path}`
    bundle.set(path, { bytes: read(from), mode: statSync(from).mode })
  }
  for (const [path, bytes] of zodFiles(source)) bundle.set(path, { bytes, mode: 0o644 })
  return bundle
}

// ---- Targets ----------------------------------------------------------------------------------------------------------

const PROMPTS = "prompts"
export const PROMPTS_BESIDE_OWN = ".opencode/prompts"
/** Identifies Baton's prompts among a project's own files; see docs/prompts.md and task/prompts.ts. */
const CONTRACT_COMMENT = /^<!--[ \t]*baton:/m

/** @param {string} path */
const isPromptOfBaton = (path) => isFile(path) && CONTRACT_COMMENT.test(new TextDecoder().decode(read(path)))

/**
 * The folder for the prompts: the present one, or the project's `prompts` if that is missing, empty, or holds a prompt of Baton.
 * Otherwise `prompts` is the project's own, and nothing is written into it.
 * @param {Locate} at @param {readonly string[]} knownPaths @param {Bundle} files
 */
const choosePromptsFolder = (at, knownPaths, files) => {
  const earlier = [PROMPTS, PROMPTS_BESIDE_OWN].find((folder) =>
    knownPaths.some((path) => path.startsWith(`${folder}/`)),
  )
  if (earlier !== undefined) return earlier
  const folder = at(PROMPTS)
  if (!exists(folder)) return PROMPTS
  if (!isFolder(folder)) return PROMPTS_BESIDE_OWN
  const holdsOurs = [...files.keys()].some((file) => file.startsWith(`${PROMPTS}/`) && isPromptOfBaton(at(file)))
  return holdsOurs || readdirSync(folder).length === 0 ? PROMPTS : PROMPTS_BESIDE_OWN
}

/** The project path of a file of the checkout. @param {string} file @param {string} prompts the folder for prompts */
const placeOf = (file, prompts) => {
  if (file === ".opencode/baton/ignore") return ".opencode/baton/.ignore"
  return file.startsWith(`${PROMPTS}/`) ? `${prompts}${file.slice(PROMPTS.length)}` : file
}

/**
 * Keeps Baton out of the project's own npm package. npm takes no `.gitignore` of a folder that has this file: so it names also
 * what OpenCode's own leaves out there.
 * @param {string} prompts @param {readonly string[]} places of Baton's files @returns {[path: string, content: Content][]}
 */
const npmIgnores = (prompts, places) => {
  const below = (/** @type {string} */ folder) => (/** @type {string} */ path) =>
    path.startsWith(`${folder}/`) && !path.startsWith(`${BUNDLE}/`) ? [path.slice(folder.length)] : []
  const ofBaton = ["/baton/", "/baton.json", "/state/", "/state.foreign-*/", "/pass-over-logs/", "/.npmignore"]
  const ofOpenCode = ["node_modules", "/package.json", "/package-lock.json", "/bun.lock", "/.gitignore"]
  const folders = {
    ".opencode": [...ofBaton, ...places.flatMap(below(".opencode")), "*.baton-new", ...ofOpenCode],
    ...(prompts === PROMPTS ? { [PROMPTS]: [...places.flatMap(below(PROMPTS)), "*.baton-new"] } : {}),
  }
  const head = "# Keeps Baton out of this project's npm package. Written by Baton's installation."
  return Object.entries(folders).map(([folder, lines]) => [
    `${folder}/.npmignore`,
    { bytes: Buffer.from(`${[head, ...lines].join("\n")}\n`), mode: 0o644 },
  ])
}

// ---- Folders that cannot be written -----------------------------------------------------------------------------------

/** @param {Iterable<string>} paths @returns {string[]} every folder above them, and the project itself, as "" */
const foldersAbove = (paths) => {
  const folders = new Set([""])
  for (const path of paths) {
    for (let above = posix.dirname(path); above !== "."; above = posix.dirname(above)) folders.add(above)
  }
  return [...folders].sort()
}

/** @param {string} path */
const checkFolder = (path) => {
  const found = lookWith(path, lstatSync)
  if (found === undefined) return
  if (found.isSymbolicLink()) {
    throw new InstallError(`${path} is a symbolic link to ${readlinkSync(path)}. Nothing was changed.
  Replace the link by a folder, or install into the project it leads to`)
  }
  if (!found.isDirectory())
    throw new InstallError(`${path} is not a folder. Nothing was changed. Move it away and try again`)
  const remedy = "Make it writable (chmod u+w) or run as its owner"
  if (!isAllowed(path, constants.W_OK))
    throw new InstallError(`cannot write in ${path}. Nothing was changed. ${remedy}`)
}

// ---- What others put there --------------------------------------------------------------------------------------------

const BUNDLE = ".opencode/baton"
/** Everything below the folder but folders. @param {Locate} at @param {string} folder @returns {string[]} */
const allBelow = (at, folder) => {
  if (!isFolder(at(folder))) return []
  return readdirSync(at(folder), { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? allBelow(at, `${folder}/${entry.name}`) : [`${folder}/${entry.name}`],
  )
}

/** Files in the bundle's folder that this program did not put there. @param {Locate} at @param {Set<string>} ours */
const foreignFiles = (at, ours) =>
  allBelow(at, BUNDLE).filter((path) => !ours.has(path) && !/\.baton-(?:tmp|new)$|\/\.DS_Store$/.test(path))

/** @param {string} project @param {Locate} at */
const refuseForeign = (project, at) => {
  if (foreignFiles(at, new Set()).length === 0) return
  throw new InstallError(`${project} has ${BUNDLE}, a program that OpenCode would run, and no manifest of this program beside it.
  It may have come with the repository. Nothing was changed. Look at it and move it away; or, if it is yours, run the same
  command with --take-over`)
}

// ---- The plan ---------------------------------------------------------------------------------------------------------

/**
 * @param {{ source: string, project: string, isGlobal: boolean, mode: Mode, takeOver: boolean, choices: Choices | undefined } & Options} order
 * @returns {Plan}
 */
export const planWork = ({ source, project, isGlobal, mode, takeOver, choices, autoTask, passOver }) => {
  const at = createLocate(project, isGlobal)
  const known = readManifest(at)
  const fileLines = known.filter((line) => !line.startsWith(FOLDER))
  const knownLines = fileLines.filter((line) => line !== pendingLine(pathIn(line)))
  const knownPaths = [...new Set(knownLines.map(pathIn))].sort()
  const folders = new Set(known.filter((line) => line.startsWith(FOLDER)).map(pathIn))
  /** @type {Step[]} */
  const steps = []
  /** @type {string[]} */
  const record = []

  const isKnown = (/** @type {string} */ path) => knownPaths.includes(path)
  /** An unchanged file of an earlier installation. */
  const isUntouched = (/** @type {string} */ path) => {
    return isRegular(at(path)) && knownLines.includes(lineOf(read(at(path)), path))
  }

  /** A file whose absence is the user's decision may be added: for the first time, or by a run that was cut off before it did. */
  const isOpen = (/** @type {string} */ path) => !isKnown(path) || fileLines.includes(pendingLine(path))
  const knownLinesOf = (/** @type {string} */ path) => knownLines.filter((line) => pathIn(line) === path)

  /** Keeps the user's file at the path; the new version gets a name beside it that OpenCode does not load. */
  const planBeside = (/** @type {string} */ path, /** @type {Content} */ content) => {
    const why = isKnown(path) ? "you changed it" : "it was yours before"
    const beside = `${path}${BESIDE}`
    const isBeside = path.endsWith(BESIDE)
    const line = lineOf(content.bytes, beside)
    const isMerged = !exists(at(beside)) && !isOpen(beside) && knownLines.includes(line)
    const there = isMerged ? why : `${why}; the new version is beside it as ${posix.basename(beside)}`
    const reason = isBeside ? "you changed it; delete it to get the newest version here" : there
    steps.push({ action: "keep", path, reason })
    if (isBeside) return
    if (isKnown(path)) record.push(lineOf(content.bytes, path))
    if (isMerged) record.push(line)
    else planFile(beside, content)
  }

  const planFile = (/** @type {string} */ path, /** @type {Content} */ content) => {
    const to = at(path)
    if (path === PASS_POLICY && passOver === false && isUntouched(path)) {
      steps.push({ action: "remove", path })
      return void record.push(...knownLinesOf(path))
    }
    const isUnwanted = choices?.passOver === false || (!isOpen(path) && passOver !== true)
    if (path === PASS_POLICY && !exists(to) && isUnwanted)
      return void record.push(...(isKnown(path) ? knownLinesOf(path) : [lineOf(content.bytes, path)]))
    if (path === PASS_POLICY && exists(to) && !isUntouched(path)) {
      const why = isKnown(path) ? "you changed it" : "it was yours before"
      if (!content.bytes.equals(read(to))) steps.push({ action: "keep", path, reason: why })
      return void record.push(...knownLinesOf(path))
    }
    if (!exists(to)) {
      for (const above of foldersAbove([path])) if (above && !exists(at(above))) folders.add(above)
      steps.push({ action: "add", path, content })
    } else if (isRegular(to) && content.bytes.equals(read(to))) {
      if (!isKnown(path) && !takeOver) return
      const isMissingMode = (content.mode & 0o111) !== 0 && !isAllowed(to, constants.X_OK)
      if (isMissingMode) steps.push({ action: "update", path, content })
    } else if (isUntouched(path) || (takeOver && path.startsWith(`${BUNDLE}/`))) {
      steps.push({ action: "update", path, content })
    } else return planBeside(path, content)
    record.push(lineOf(content.bytes, path))
  }

  /** Plans for a path on the manifest that is no longer part of the bundle. */
  const planRemoval = (/** @type {string} */ path) => {
    if (isUntouched(path)) steps.push({ action: "remove", path })
    else if (exists(at(path))) steps.push({ action: "keep", path, reason: "you changed it; it is yours now" })
  }

  /** @param {boolean} isWanted where there are none */
  const planSettings = (isWanted) => {
    const isThere = exists(at(SETTINGS))
    const isOurs = !isThere || isUntouched(SETTINGS)
    const text = isRegular(at(SETTINGS)) ? read(at(SETTINGS)).toString() : ""
    const isSwitched = isKnown(SETTINGS) && autoTask !== undefined && hasAutoTask(at) !== autoTask
    let wanted = text
    if (!isThere) wanted = isWanted ? settingsText(true) : ""
    else if (isSwitched) wanted = isOurs ? settingsText(autoTask) : withAutoTask(text, autoTask)
    if (wanted === text) return void record.push(...knownLinesOf(SETTINGS))
    const content = { bytes: Buffer.from(wanted), mode: 0o644 }
    steps.push({ action: isThere ? "update" : "add", path: SETTINGS, content })
    record.push(...(isOurs ? [lineOf(content.bytes, SETTINGS)] : knownLinesOf(SETTINGS)))
  }

  const files = mode === "install" ? bundleOf(source) : new Map()
  const prompts = isGlobal ? PROMPTS_BESIDE_OWN : choosePromptsFolder(at, knownPaths, files)
  const places = new Map([...files].map(([file, content]) => [placeOf(file, prompts), content]))
  if (mode === "install" && !isGlobal)
    for (const [path, content] of npmIgnores(prompts, [...places.keys()])) places.set(path, content)
  for (const folder of foldersAbove([...places.keys(), ...knownPaths, STATE])) checkFolder(at(folder))
  if (mode === "install" && !takeOver && known.length === 0 && !isGlobal) refuseForeign(project, at)
  for (const [path, content] of places) planFile(path, content)
  // A checkout whose packages are not installed has no zod: the one that is there stays.
  if (mode === "install" && ![...places.keys()].some(isOfZod))
    record.push(...knownLines.filter((line) => isOfZod(pathIn(line))))
  const isWanted = isKnown(SETTINGS) ? choices?.autoTask !== false : known.length === 0 && choices?.autoTask
  if (mode === "install") planSettings((isWanted && isOpen(SETTINGS)) || autoTask === true)
  const wanted = new Set(record.map(pathIn))
  for (const path of knownPaths) if (!wanted.has(path)) planRemoval(path)
  if (mode === "install") {
    for (const path of foreignFiles(at, new Set([...wanted, ...knownPaths, MANIFEST]))) {
      if (takeOver) steps.push({ action: "remove", path })
      else steps.push({ action: "keep", path, reason: "it is not Baton's; --take-over removes it" })
    }
  }
  const changed = steps.filter(({ action }) => action === "add" || action === "remove").map(({ path }) => path)
  // Also for an uninstallation that is cut off: a file that it removed was not deleted by the user.
  const isPending = (/** @type {string} */ path) =>
    changed.includes(path) || (mode === "uninstall" && fileLines.includes(pendingLine(path)))
  const beside = [...wanted, ...knownPaths].filter((path) => path.endsWith(BESIDE))
  const pending = [PASS_POLICY, SETTINGS, ...beside].filter(isPending).map(pendingLine)
  const isOnRecord = [...record].sort().join("\n") === fileLines.join("\n")
  return { steps, record, pending, isOnRecord, folders, knownLines, knownPaths, isKnown: known.length > 0, prompts, at }
}
