import { existsSync } from "node:fs"
import { join } from "node:path"
import { createHandoffRecords } from "../../handoff/records.ts"
import { describeError, type Log, SILENT } from "../../host/log.ts"
import { findExecutables, isExecutableFile } from "../../host/process.ts"
import { accountSettingsPath, readAccountSettings, readSettings, SETTINGS_FILE } from "../../host/settings.ts"
import { createStateFolder } from "../../host/state.ts"
import { counted } from "../../host/text.ts"
import { readOwnTextSync } from "../../host/untrusted.ts"
import { createSessionRecords } from "../../learning/records.ts"
import { readC2c } from "../../live-state/c2c/identity.ts"
import { listStates } from "../../live-state/observe/state-files.ts"
import { liveFolder } from "../../live-state/statefile.ts"
import { chooseWriter, WRITER_VARIABLE } from "../../live-state/stream-writer.ts"
import { BUILT_IN_POLICY, readPolicy } from "../../pass-over/policy/policy.ts"
import { POLICY_FILE, policyPath } from "../../pass-over/policy/policy-path.ts"
import { listPending, type PendingPass } from "../../pass-over/sandbox/stored.ts"
import { createPassOwners, createPassStore } from "../../pass-over/store/store.ts"
import type { Context } from "../context.ts"
import { broken, type Check, launcherOf, type Observation, ok, type Served, warning } from "../report.ts"

/** Command files of the project; if one exists, Baton's command gets another name. */
const OWN_COMMAND_FILES = [".opencode/command/handoff.md", ".opencode/commands/handoff.md"]

const checkName = (root: string): readonly Observation[] => {
  const own = OWN_COMMAND_FILES.find((path) => existsSync(join(root, path)))
  return own === undefined ? [] : [ok(`${own} keeps the name /handoff; Baton's command is /baton-handoff`)]
}

export const handoffsCheck: Check = {
  id: "handoffs",
  needsBundle: true,
  readsState: true,
  run: async (context) => {
    const { root } = context
    const unusable: string[] = []
    const warn = (_message: string, { path, error }: Record<string, unknown> = {}): void => {
      unusable.push([path, error].filter(Boolean).join(": "))
    }
    const all = await createHandoffRecords({ state: createStateFolder(root), log: { ...SILENT, warn } }).list()
    const unsent = all.filter(({ arrivals }) => arrivals.length === 0)
    const waiting = unsent.length === 0 ? "" : `, ${unsent.length} not sent yet`
    const count = `${counted(all.length, "handoff")}${waiting}`
    const fix = `Delete the file if its draft is not needed; ${launcherOf("baton", context)} handoffs lists the others.`
    return [
      ...(all.length === 0 && unusable.length > 0 ? [] : [ok(all.length === 0 ? "no handoff was made yet" : count)]),
      ...unusable.map((what) => warning(`a stored handoff cannot be read: ${what}`, fix)),
      ...checkName(root),
    ]
  },
}

const isInstalled = (program: string, { PATH }: Context["environment"]): boolean =>
  program.includes("/") ? isExecutableFile(program) : findExecutables(program, PATH).length > 0

const OFF_MEANWHILE = `off while ${SETTINGS_FILE} cannot be used in full`

const checkWriter = async ({ root, environment, serving }: Served): Promise<Observation> => {
  const read = await readSettings(root, serving.folder)
  const { liveState } = read.settings
  if (!liveState.enabled) return ok(read.kind === "settings" ? "switched off in .opencode/baton.json" : OFF_MEANWHILE)
  const account = accountSettingsPath(environment)
  if (liveState.writer !== undefined)
    return warning(
      `the writer ${JSON.stringify(liveState.writer)} of ${SETTINGS_FILE} is not run: a project names no program`,
      `If you want it, move liveState.writer to ${account}; else delete it.`,
    )
  const settings = await readAccountSettings(environment).catch(describeError)
  if (typeof settings === "string") return warning(`${account} cannot be used: ${settings}`, "Mend it, or delete it.")
  const c2c = await readC2c({ environment, folders: [root] })
  const chosen = chooseWriter({
    variable: environment[WRITER_VARIABLE],
    setting: settings.liveState?.writer,
    c2c: c2c.kind === "session" ? c2c.program : undefined,
  })
  if (chosen.kind === "none")
    return warning(`nothing gets the stream: ${chosen.reason}`, `Set ${WRITER_VARIABLE} to such an array, or unset it.`)
  const own = "the states are in .opencode/state/live"
  if (chosen.kind === "own")
    return ok(c2c.kind === "own-plugin" ? `${own}; c2c is left to its own plugin, ${c2c.path}` : own)
  const [program] = chosen.argv
  if (isInstalled(program, environment)) return ok(`the stream goes to ${program}`)
  const fix = `Install it, or change ${WRITER_VARIABLE} or liveState.writer in ${account}.`
  return warning(`nothing gets the stream: the writer '${program}' is not there`, fix)
}

const checkWaitingCommand = async ({ environment }: Context): Promise<readonly Observation[]> => {
  // Settings that cannot be used are the writer's finding.
  const { onWaiting: [program] = [] } = await readAccountSettings(environment).catch(() => ({ onWaiting: undefined }))
  if (program === undefined || isInstalled(program, environment)) return []
  const fix = `Install it, or change onWaiting in ${accountSettingsPath(environment)}.`
  return [warning(`no request that waits is told: the program '${program}' of onWaiting is not there`, fix)]
}

const checkAgents = async (context: Served): Promise<Observation> => {
  const problems: string[] = []
  const states = await listStates(liveFolder(context.root), (problem) => problems.push(problem))
  if (problems.length > 0)
    return warning(`no agent is seen in ${problems.join("; ")}`, "Make it a file that can be read, or remove it.")
  const gone = states.filter(({ alive }) => !alive).length
  const count = `${states.length - gone} at work, ${gone} gone`
  return ok(
    gone === 0 ? `agents: ${count}` : `agents: ${count} (${launcherOf("baton", context)} state prune forgets those)`,
  )
}

export const liveStateCheck: Check = {
  id: "live-state",
  needsBundle: true,
  run: async (context) => [
    await checkWriter(context),
    ...(await checkWaitingCommand(context)),
    await checkAgents(context),
  ],
}

const UNUSABLE_FIX = "Delete the file; what its session taught is in the ledger, unless it was waiting."

export const learningCheck: Check = {
  id: "learning",
  needsBundle: true,
  readsState: true,
  run: async (context) => {
    const { root, serving } = context
    const read = await readSettings(root, serving.folder)
    if (!read.settings.learning.enabled)
      return [ok(read.kind === "settings" ? "session learning is switched off" : OFF_MEANWHILE)]
    const unusable: string[] = []
    const warn: Log["warn"] = (_message, { path, folder, error } = {}) => {
      unusable.push([path ?? folder, error].filter(Boolean).join(": "))
    }
    const log: Log = { debug: () => {}, info: () => {}, warn, error: warn }
    const records = createSessionRecords({ state: createStateFolder(root), log, pid: process.pid })
    const all = await records.all()
    const taught = all.reduce((sum, { sayings }) => sum + sayings.filter(({ state }) => state !== "undone").length, 0)
    const given = all.filter((record) => record.given.length > 0).length
    const waiting = all.reduce((sum, { sayings }) => sum + sayings.filter(({ state }) => state === "waiting").length, 0)
    const nothing = all.length === 0 && unusable.length === 0
    const summary = nothing
      ? "nothing was learned yet"
      : `${counted(taught, "sentence")} learned from, learnings given to ${counted(given, "session")}`
    const learned = `${launcherOf("baton", context)} learned`
    const waitingFix = `OpenCode stores it at its next start here; ${learned} lists what is stored.`
    return [
      ok(summary),
      ...(waiting > 0 ? [warning(`${waiting} of them wait to reach the outbox`, waitingFix)] : []),
      ...unusable.map((what): Observation => warning(`a session's record cannot be read: ${what}`, UNUSABLE_FIX)),
    ]
  },
}

/** The bundle's own policy sets nothing. */
const isAsInstalled = (path: string): boolean => {
  try {
    const policy: unknown = JSON.parse(readOwnTextSync(path, { isForeign: true }))
    return typeof policy === "object" && policy !== null && Object.keys(policy).every((key) => key === "$schema")
  } catch {
    return false
  }
}

const POLICY_KEYS =
  " It may hold defaults, pairs, subagents, audit_log (enabled, retention_days); " +
  `each of the first three, ${Object.keys(BUILT_IN_POLICY).join(", ")}.`

const checkPolicy = async (context: Served): Promise<Observation> => {
  const { root, serving } = context
  // It throws without zod: in a checkout whose packages are not installed.
  const path = policyPath(root, serving.folder)
  const shown = path === join(root, POLICY_FILE) ? POLICY_FILE : path
  const read = await readPolicy(root, path).catch(describeError)
  if (typeof read === "string")
    return isAsInstalled(path)
      ? ok(`${shown} is as it was installed`)
      : warning(`${shown} cannot be checked: ${read}`, `Then run ${launcherOf("baton", context)} doctor there.`)
  if (read.kind === "policy")
    return ok(
      read.isMissing
        ? `no ${POLICY_FILE}: no agent passes work over; {} in it switches that on`
        : `${shown} is in order`,
    )
  const { message, cause } = read.error
  const known = cause.includes("Unrecognized key") ? POLICY_KEYS : ""
  return broken(`${message}: ${cause}`, `Mend ${shown}.${known} Until then nothing is passed.`)
}

const checkPending = (pass: PendingPass, context: Served): readonly Observation[] => {
  const { passID, state, since, isOwned } = pass
  if (state === "stored" || isOwned) return []
  if (state === "damaged") {
    const fix = `Look at .opencode/state/pass-over/${passID}; delete the folder when its changes are not needed.`
    return [warning(`the files of ${passID} cannot be read: ${pass.reason ?? "unknown"}`, fix)]
  }
  const what = state === "applying" ? "while its changes were applied" : "while its subagent worked"
  const fix = `Run ${launcherOf("baton", context)} passes restore ${passID}; OpenCode does it too when it starts. Nothing is lost.`
  return [warning(`${passID}, begun ${since.slice(0, 16).replace("T", " ")}, was cut off ${what}`, fix)]
}

const countHeld = (pending: readonly PendingPass[]): readonly Observation[] => {
  const held = pending.filter(({ state }) => state === "stored").length
  if (held === 0) return []
  return [ok(`${counted(held, "pass holds", "passes hold")} changes that wait to be applied or rejected`)]
}

export const passesCheck: Check = {
  id: "passes",
  needsBundle: true,
  readsState: true,
  run: async (context) => {
    const state = createStateFolder(context.root)
    const store = createPassStore({ state, log: { warn: () => {} } })
    const pending = await listPending(state, { store, owners: createPassOwners(state) })
    return [
      await checkPolicy(context),
      ...countHeld(pending),
      ...pending.flatMap((pass) => checkPending(pass, context)),
    ]
  },
}
