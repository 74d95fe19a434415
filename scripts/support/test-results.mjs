// Prints the result of a test run from vitest's JSON report, and the promises without a green test.
// Usage: node scripts/support/test-results.mjs REPORT [--whole]
// With --whole, which says that nothing was left out, a promise without a green test is a failure.
import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"

const [path, mode] = process.argv.slice(2)
if (!existsSync(path)) {
  console.error("error: no results: vitest was ended; .cache/failures.md has what failed until then")
  process.exit(1)
}

const report = JSON.parse(readFileSync(path, "utf8"))
const tests = report.testResults.flatMap((file) => file.assertionResults)
const failures = join(dirname(path), "failures.md")
const told = existsSync(failures) ? readFileSync(failures, "utf8") : ""
// Last, since a log that is cut keeps its end. A failure's last lines may be the screen that was seen.
const shorten = (text) => (text.length > 1_000 ? `${text.slice(0, 400)}\n…\n${text.slice(-600)}` : text)
for (const failure of told.split(/^## /m).slice(1)) console.log(`failed: ${shorten(failure.trim())}`)
const skipped = report.numPendingTests + report.numTodoTests
console.log(`\n${report.numPassedTests} passed, ${report.numFailedTests} failed, ${skipped} skipped`)
if (!report.success) process.exit(1)

const list = readFileSync(join(import.meta.dirname, "..", "..", "test", "requirements.ts"), "utf8")
const promises = [...list.matchAll(/^ {2}"([a-z\d-]+\.[A-Z]\d+[a-z]?)":/gm)].map(([, id]) => id)

/** The ids that `promised` puts before a title. */
const idsOf = (title) => /^[\w. -]+(?=: )/.exec(title)?.[0].split(" ") ?? []
const kept = new Set(
  tests
    .filter((test) => test.status === "passed")
    .flatMap((test) => [...test.ancestorTitles, test.title].flatMap(idsOf)),
)
const open = promises.filter((id) => !kept.has(id))

if (mode !== "--whole") {
  console.log(`${promises.length - open.length} of ${promises.length} promises have a green test in this run`)
} else if (open.length > 0) {
  console.error(`error: no green test keeps ${open.join(", ")} (test/requirements.ts)`)
  process.exit(1)
} else {
  console.log(`each of ${promises.length} promises has a green test`)
}
