import { join } from "node:path"
import { findPrograms, isExecutableFile } from "../../host/process.ts"
import { DEFAULT_SETTINGS, readSettings } from "../../host/settings.ts"
import { listStates } from "../../live-state/found-states.ts"
import { chooseWriter, WRITER_VARIABLE } from "../../live-state/writer-command.ts"
import { type Check, type Observation, ok, type Subject, warning } from "../finding.ts"

const PRUNE = ".opencode/baton/bin/baton state prune"

const judgeWriter = async ({ root, environment }: Subject): Promise<Observation> => {
  const read = await readSettings(root)
  const { liveState } = read.kind === "settings" ? read.settings : DEFAULT_SETTINGS
  if (!liveState.enabled) return ok("switched off in .opencode/baton.json")
  const chosen = chooseWriter({
    variable: environment[WRITER_VARIABLE],
    setting: liveState.writer,
    c2c: (await findPrograms("c2c", environment.PATH))[0],
    // Whatever runs OpenCode; the other checks say whether it is there.
    runtime: "opencode",
    script: join(root, ".opencode/baton/live-state/state-writer.ts"),
    directory: root,
  })
  if (chosen.kind === "none")
    return warning(`no live state: ${chosen.reason}`, `Set ${WRITER_VARIABLE} to such an array, or unset it.`)
  if (chosen.kind === "embedded") return ok("the embedded writer keeps .opencode/state/live")
  const [program] = chosen.command.argv
  const isThere = program.includes("/")
    ? await isExecutableFile(program)
    : (await findPrograms(program, environment.PATH)).length > 0
  if (isThere) return ok(`the stream goes to ${program}`)
  const fix = `Install it, or change ${WRITER_VARIABLE} or liveState.writer in .opencode/baton.json.`
  return warning(`no live state: the writer '${program}' is not there`, fix)
}

const judgeAgents = async ({ root }: Subject): Promise<Observation> => {
  const problems: string[] = []
  const states = await listStates(join(root, ".opencode", "state", "live"), (problem) => problems.push(problem))
  if (problems.length > 0)
    return warning(`no agent is seen in ${problems.join("; ")}`, "Make it a file that can be read, or remove it.")
  const gone = states.filter(({ alive }) => !alive).length
  const count = `${states.length - gone} at work, ${gone} gone`
  return ok(gone === 0 ? `agents: ${count}` : `agents: ${count} (${PRUNE} forgets those)`)
}

export const liveStateCheck: Check = {
  id: "live-state",
  needsBundle: true,
  examine: async (subject) => [await judgeWriter(subject), await judgeAgents(subject)],
}
