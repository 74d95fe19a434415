import { existsSync } from "node:fs"
import { join } from "node:path"
import { createHandoffRecords } from "../../handoff/handoff-record.ts"
import { createStateFolder } from "../../host/state.ts"
import { type Check, type Observation, ok, warning } from "../finding.ts"

/** Where OpenCode looks for a command; one of the name keeps it, and Baton's is called otherwise. */
const OWN_COMMAND_FILES = [".opencode/command/handoff.md", ".opencode/commands/handoff.md"]

const judgeName = (root: string): readonly Observation[] => {
  const own = OWN_COMMAND_FILES.find((path) => existsSync(join(root, path)))
  return own === undefined ? [] : [ok(`${own} keeps the name /handoff; Baton's command is /baton-handoff`)]
}

export const handoffsCheck: Check = {
  id: "handoffs",
  needsBundle: true,
  examine: async ({ root }) => {
    const unusable: string[] = []
    const warn = (_message: string, { path, error }: Record<string, unknown> = {}): void => {
      unusable.push([path, error].filter(Boolean).join(": "))
    }
    const all = await createHandoffRecords({ state: createStateFolder(root), log: { warn } }).list()
    const unsent = all.filter(({ arrivals }) => arrivals.length === 0)
    const waiting = unsent.length === 0 ? "" : `, ${unsent.length} not sent yet`
    const count = `${all.length} ${all.length === 1 ? "handoff" : "handoffs"}${waiting}`
    const fix = "Delete the file if its draft is not needed; .opencode/baton/bin/baton handoffs lists the others."
    return [
      ...(all.length === 0 && unusable.length > 0 ? [] : [ok(all.length === 0 ? "no handoff was made yet" : count)]),
      ...unusable.map((what) => warning(`a stored handoff cannot be read: ${what}`, fix)),
      ...judgeName(root),
    ]
  },
}
