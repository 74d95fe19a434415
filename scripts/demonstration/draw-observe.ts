import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { makeOwnFolder } from "../../test/support/files/own-state.ts"
import { openTestLedger } from "../../test/support/ledger/test-ledger.ts"
import { startObserver, writeStatefile } from "../../test/support/opencode/observer.ts"
import { NEWEST } from "../../test/support/opencode/opencode-binary.ts"
import { createTestProject } from "../../test/support/opencode/test-project.ts"

/** draw-observe.ts FOLDER: FOLDER/observe-light.png and observe-dark.png, from the real page of six agents' statefiles. */
const [folder] = process.argv.slice(2)
if (!folder) throw new Error("expected FOLDER; start it with ./scripts/picture observe")

/** Longer than the observer's polling interval: each step is seen. */
const STEP_MS = 600
const MOST_STEPS = 7
const NO_SUCH_PROCESS = 2 ** 22 + 1

/**
 * Name, task, its log, and the steps: minutes ago, the activity from then on, and the turns, compactions and handoffs until then.
 * The last agent is gone after its last step.
 */
type Agent = readonly [name: string, task: string, log: readonly string[], steps: string]

const AGENTS: readonly Agent[] = [
  [
    "parser",
    "Teach the parser CRLF",
    ["Trimming each line eats spaces of words: dropped", "Compaction 2: 3 files changed; next: node --test"],
    "14 busy, 11 busy c1, 5 idle t1 c1, 4.2 busy t1 c1, 2 busy t1 c2, 1.1 question t1 c2",
  ],
  [
    "release",
    "Publish 2.4.0",
    ["The changelog is complete", "Tests pass on both platforms"],
    "13.5 idle, 7 busy, 3 idle t1, 2.5 busy t1, 0.6 permission t1",
  ],
  [
    "api",
    "Move the API to version 2",
    ["14 of 19 routes answer as before", "Compaction 3: the old client is the oracle"],
    "14 busy, 12 busy c1, 9.5 busy c2, 7.2 idle t1 c2, 6.8 busy t1 c2, 4 busy t1 c3",
  ],
  [
    "docs",
    "Explain the settings",
    ["Each setting has an example", "Handed over to a new session: goal, next steps"],
    "14 busy, 10 busy c1, 8.6 busy c1 h1, 8.2 idle t1 c1 h1, 6 busy t1 c1 h1, 1.5 idle t2 c1 h1",
  ],
  [
    "flaky-tests",
    "Find the test that fails at night",
    ["Fails at 23:00 UTC and never before", "The clock of the fixture is the machine's"],
    "13 busy, 12 idle t1, 10.5 busy t1, 9 idle t2, 8 busy t2, 6.4 idle t3, 5.5 busy t3",
  ],
  ["spike", "Try the new bundler", ["Half the size, twice the time: not worth it"], "14 busy, 10 idle t1"],
]
const GONE = "spike"

const PERMISSION = { id: "per_1", title: "bash", type: "bash" }
const COMMAND = "npm publish --dry-run"
const QUESTION = {
  id: "que_1",
  header: "Line ends",
  text: "Files from Windows end in CRLF. Which end should be written back?",
  options: ["The one that was read", "Always LF", "As the settings say"],
}

const environment = { BATON_RUNTIME: NEWEST.path, BATON_OPENCODE: NEWEST.path }
const project = createTestProject({ binary: NEWEST, modelURL: "", folder: "home/my-project", environment })
const { addTask, prog } = openTestLedger(project, NEWEST)
const startedAt = Date.now()
const iso = (minutesAgo: number): string => new Date(startedAt - minutesAgo * 60_000).toISOString()

const write = ([name, , , all]: Agent, taskID: string, index: number): void => {
  const steps = all.split(", ").map((step) => step.split(" "))
  const [minutesAgo, doing, ...counts] = steps[index] ?? []
  if (minutesAgo === undefined) return
  const count = (letter: string): number => Number(counts.find((text) => text.startsWith(letter))?.slice(1) ?? 0)
  const ts = iso(Number(minutesAgo))
  const began = steps.findLastIndex(([, other], at) => at < index && other !== doing) + 1
  const extensions = {
    task: { id: taskID, role: name === "api" ? "planner" : "worker" },
    permission_subject: doing === "permission" ? COMMAND : null,
    compactions: count("c"),
    handoffs: count("h"),
    status_since: iso(Number(steps[began]?.[0])),
    heartbeat_at: ts,
    context_tokens: 9_100 + name.length * 1_777 + count("t") * 640,
  }
  const state = {
    opencode_pid: name === GONE && index === steps.length - 1 ? NO_SUCH_PROCESS : process.pid,
    plugin_started_at: iso(15),
    agent: { is_idle: doing === "idle", turn_count: count("t"), last_step: null },
    tui_focus: doing === "permission" ? { ty: doing, details: PERMISSION } : { ty: "prompt", details: null },
    pendingQuestion: doing === "question" ? QUESTION : null,
    extensions,
  }
  writeStatefile(makeOwnFolder(project, "live"), name, state, ts)
}

const taskIDs: string[] = []
for (const [name, title, log] of AGENTS) {
  const taskID = await addTask({ title, specification: "", definitionOfDone: "" })
  taskIDs.push(taskID)
  if (name !== GONE) await prog("start", taskID)
  for (const entry of log) await prog("log", taskID, entry)
}
const observer = startObserver(project)
try {
  for (let step = 0; step < MOST_STEPS; step++) {
    for (const [index, agent] of AGENTS.entries()) write(agent, taskIDs[index] ?? "", step)
    await wait(STEP_MS)
  }
  const photographer = join(import.meta.dirname, "photograph.mjs")
  execFileSync("node", [photographer, "observe", await observer.address(), join(folder, "observe")])
} finally {
  await observer.stop()
  await project.remove()
}
process.exit()
