/** `baton waiting`: all that waits for a person, in all projects of the account. Exits with 0, with 2 for a wrong command line. */
import { basename } from "node:path"
import { parseArgs } from "node:util"
import { complain, print, printableLine, printJSON, runCommand } from "../host/cli.ts"
import { createObserver } from "./observe/observer.ts"
import type { WaitEntry } from "./on-waiting.ts"
import { listProjects } from "./projects.ts"
import { describeWait, duration, ofWhom, STATUS } from "./web/page/words.js"

const parse = (args: readonly string[]) => {
  const { values } = parseArgs({ args: [...args], options: { json: { type: "boolean", default: false } } })
  return values
}

const render = (entry: WaitEntry & { readonly name: string }): string => {
  const { project, folder, name, rootTitle, kind, since, goTo, answer } = entry
  const age = since === undefined ? "" : `, ${duration(Date.now() - Date.parse(since))}`
  const heading = `${project} · ${rootTitle ?? name}: ${STATUS[kind].word}${age}`
  const lines = [describeWait(entry), ...ofWhom(entry), goTo ?? folder, ...(answer === undefined ? [] : [answer])]
  return [printableLine(heading), ...lines.map((line) => `    ${printableLine(line)}`)].join("\n")
}

const run = async ({ json }: ReturnType<typeof parse>): Promise<number> => {
  const report = (problem: string): void => complain(`waiting: left out: ${problem}`)
  const observer = createObserver([], report, () => listProjects(report))
  const agents = await observer.look()
  observer.close()
  const entries = agents
    .flatMap(({ root, view: { waits, pid, name } }) =>
      waits.map((wait) => ({ project: basename(root), folder: root, pid, name, ...wait })),
    )
    // Longest first.
    .sort((a, b) => ((a.since ?? "") < (b.since ?? "") ? -1 : 1))
  if (json) printJSON(entries)
  else print(entries.length === 0 ? "Nothing waits" : entries.map(render).join("\n"))
  return 0
}

await runCommand({ name: "waiting", parse, run })
