// The stamp of the last whole check, ./scripts/test --all.
// Usage: node scripts/support/night.mjs tell STAMP                     says in one line when it was, and whether that is too old
//        node scripts/support/night.mjs write STAMP COMMIT REPORT ...  writes it from vitest's JSON reports, if all are green
// BATON_SEED and BATON_EFFORT are kept in it: they give the same random values again.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { basename, dirname } from "node:path"

const [command, path, commit, ...reports] = process.argv.slice(2)
const MOST_DAYS = 14
const DAY_MS = 86_400_000

const tell = () => {
  if (!existsSync(path)) return "the whole check (--all) has not run yet"
  const { date, commit } = JSON.parse(readFileSync(path, "utf8"))
  const isOld = Date.now() - Date.parse(date) > (MOST_DAYS + 1) * DAY_MS
  return `the whole check (--all) last ran on ${date} at ${commit}${isOld ? `: older than ${MOST_DAYS} days` : ""}`
}

/** `…/test/unit/x.test.ts` belongs to the project "unit"; tests of the versions between the ends are known by their report. */
const projectOf = (report, file) =>
  [...(basename(report).startsWith("matrix") ? ["matrix"] : []), file.split("/test/").at(-1).split("/")[0]].join(" ")

const count = () => {
  const projects = {}
  for (const report of reports) {
    const { success, testResults } = JSON.parse(readFileSync(report, "utf8"))
    if (!success) throw new Error(`${report} is not green: ${path} is not written`)
    for (const { name, assertionResults } of testResults) {
      projects[projectOf(report, name)] ??= { passed: 0, failed: 0, skipped: 0 }
      const counts = projects[projectOf(report, name)]
      for (const { status } of assertionResults) counts[status in counts ? status : "skipped"]++
    }
  }
  return projects
}

if (command === "write") {
  const { BATON_SEED: seed, BATON_EFFORT: effort } = process.env
  const date = new Date().toISOString().slice(0, 10)
  const stamp = { commit, date, seed: Number(seed), effort: Number(effort), projects: count() }
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `${JSON.stringify(stamp, null, 2)}\n`)
}
console.log(tell())
