import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { withDeadline } from "../../.opencode/baton/host/async.ts"
import { measureRetention, retentionScript } from "../../test/support/model/retention.ts"
import type { Script } from "../../test/support/model/scripted-model.ts"
import {
  createSession,
  type ModelProject,
  openModelProject,
  openServer,
  speak,
  workerMessage,
} from "../../test/support/opencode/model-project.ts"
import { REPOSITORY } from "../../test/support/opencode/opencode-binary.ts"
import { interleave, median, pairRatios } from "./measure.ts"
import type { Benchmark, Context } from "./results.ts"

export const PEERS = ["oh-my-opencode@4.19.4", "opencode-beads@0.3.2", "@tarquinen/opencode-dcp@3.1.14"]
const SUBJECTS = ["plain OpenCode", "Baton", ...PEERS]
/** Turns off the telemetry of the first plugin. The second calls a program `bd`, and works without it. */
const ENVIRONMENT = { OMO_SEND_ANONYMOUS_TELEMETRY: "0" }

const FOLDER = join(REPOSITORY, ".cache", "peers")
const STAMP = join(FOLDER, "installed.json")
const INSTALL_DEADLINE_MS = 600_000
const CASE_DEADLINE_MS = 240_000
/** Version of 1.2.15's package cache, which deletes the packages of another version. */
const CACHE_VERSION = "21"

/** Installs them once, as OpenCode would, without their scripts. @throws when npm fails */
export const install = (say: (text: string) => void): void => {
  const wanted = JSON.stringify(PEERS)
  if (existsSync(STAMP) && readFileSync(STAMP, "utf8") === wanted) return
  say("installing the other plugins (about 600 MB on disk; once)")
  mkdirSync(FOLDER, { recursive: true })
  const options = ["--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
  const argv = ["install", "--prefix", FOLDER, ...options, ...PEERS]
  const { status, stderr, error } = spawnSync("npm", argv, { encoding: "utf8", timeout: INSTALL_DEADLINE_MS })
  if (status !== 0) throw new Error(`npm install exited with ${status}: ${stderr.slice(0, 500)}`, { cause: error })
  writeFileSync(STAMP, wanted)
}

/**
 * A project with one subject, set up as its README says: Baton as a bundle, another plugin by its entry in opencode.json. The
 * installed packages are put where OpenCode looks for them: see docs/opencode-notes.md.
 */
export const openSubject = async ({ binary }: Context, subject: string, script: Script): Promise<ModelProject> => {
  if (!PEERS.includes(subject))
    return openModelProject(binary, script, { bundle: subject === "Baton" ? "project" : "none" })
  const options = { bundle: "none", config: { plugin: [subject] }, environment: ENVIRONMENT } as const
  const opened = await openModelProject(binary, script, options)
  const cache = join(opened.project.environment.XDG_CACHE_HOME ?? "", "opencode")
  const folder = join(cache, "packages", subject)
  mkdirSync(dirname(folder), { recursive: true })
  symlinkSync(FOLDER, folder)
  symlinkSync(join(FOLDER, "node_modules"), join(cache, "node_modules"))
  const at = subject.lastIndexOf("@")
  const manifest = { dependencies: { [subject.slice(0, at)]: subject.slice(at + 1) } }
  writeFileSync(join(cache, "package.json"), JSON.stringify(manifest))
  writeFileSync(join(cache, "version"), CACHE_VERSION)
  return opened
}

/** Runs the retention scenario in `opencode serve`; the user says "Go on." if the session stops after a compaction. */
const retain = async (context: Context, subject: string, summariser: "faithful" | "careless", compactions: number) => {
  await using opened = await openSubject(context, subject, retentionScript(compactions, summariser))
  const taskID = subject === "Baton" ? await opened.addTask() : "ts-b54507"
  await using server = await openServer(opened)
  const work = async (): Promise<void> => {
    const id = await createSession(server)
    await speak(server, id, workerMessage(taskID))
    for (let told = 0; told < compactions && opened.model.received("turn").length <= compactions; told++)
      await speak(server, id, "Go on.")
  }
  const timed = await withDeadline(work(), CASE_DEADLINE_MS)
  if (timed.kind === "failed") throw timed.error
  if (timed.kind !== "done") throw new Error(`did not end within ${CASE_DEADLINE_MS / 1000} s`)
  return measureRetention(opened.model.requests, taskID)
}

/** Runs of one turn, each beside one of plain OpenCode. @returns the ratios */
const compareStarts = async (context: Context, subject: string, rounds: number): Promise<number[]> => {
  const hello: Script = () => ({ text: "Hello." })
  await using plain = await openSubject(context, "plain OpenCode", hello)
  await using own = await openSubject(context, subject, hello)
  for (const { runWell } of [plain, own]) await runWell(workerMessage())
  // OpenCode continues without a plugin that it cannot load, and gives the reason only in its log.
  const reason = /(?:error=.*)?failed to load plugin.*/.exec(own.project.log())?.[0]
  if (reason) throw new Error(`OpenCode cannot load it: ${reason}`)
  const time = async ({ runWell }: ModelProject) => (await runWell(workerMessage())).durationMs
  const { base, other } = await interleave({ base: () => time(plain), other: () => time(own) }, rounds)
  return pairRatios(base, other)
}

/** Compares plain OpenCode, Baton and other plugins on the same scripted work; failures become rows with the reason. */
export const measurePeers: Benchmark = async (context) => {
  const { binary, quick, say, row } = context
  const [compactions, rounds] = quick ? [1, 1] : [20, 8]
  install(say)
  for (const subject of SUBJECTS) {
    const about = { version: binary.version, subject }
    say(`${subject}: ${rounds} starts, and ${compactions} compactions with each summariser`)
    try {
      const start = median(await compareStarts(context, subject, rounds))
      const { factsKept: facts } = await retain(context, subject, "faithful", compactions)
      const { turnsKnowingTask: named } = await retain(context, subject, "careless", compactions)
      row("peers", { ...about, compactions, facts, named, start })
    } catch (error) {
      // The comparison needs plain OpenCode and Baton.
      if (!PEERS.includes(subject)) throw error
      const text = error instanceof Error ? error.message : String(error)
      // Without folders of this run and characters that would end a table cell.
      row("peers", { ...about, failure: text.replace(/\/\S*\/(?=[^/\s]+)|[\s|]+/g, " ").slice(0, 300) })
    }
  }
}
