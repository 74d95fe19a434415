import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { REPLAY } from "./effort.ts"
import type { ScriptedModel } from "./model/scripted-model.ts"
import { type OpenCodeBinary, REPOSITORY } from "./opencode/opencode-binary.ts"
import type { TestProject } from "./opencode/test-project.ts"

/** Sources of a failed test's report. */
export type Subject = { binary: OpenCodeBinary; model: ScriptedModel; project: TestProject }

const MOST_REQUESTS = 5

const readLog = (project: TestProject): string => {
  try {
    return project.batonLog().join("\n")
  } catch (error) {
    return `OpenCode has no log: ${String(error)}`
  }
}

/** Writes reports of a failed test to .cache/failures/NAME/: OpenCode's version, its last requests, Baton's log lines. */
export const keepFailure = (name: string, subjects: readonly Subject[]): void => {
  const folder = join(REPOSITORY, ".cache", "failures", name.replaceAll(/[^\w.-]+/g, "-").slice(0, 150))
  rmSync(folder, { recursive: true, force: true })
  for (const [index, { binary, model, project }] of subjects.entries()) {
    const place = join(folder, String(index + 1))
    const kept = process.env.BATON_KEEP_PROJECTS ? project.directory : "removed; BATON_KEEP_PROJECTS=1 keeps it"
    const requests = model.requests.slice(-MOST_REQUESTS).map(({ kind, index, body }) => ({ kind, index, body }))
    mkdirSync(place, { recursive: true })
    writeFileSync(join(place, "about.txt"), `${name}\nOpenCode ${binary.version}\nproject: ${kept}\n${REPLAY}\n`)
    writeFileSync(join(place, "requests.json"), JSON.stringify(requests, null, 2))
    writeFileSync(join(place, "baton.log"), readLog(project))
  }
}
