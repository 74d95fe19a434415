import { execFileSync } from "node:child_process"
import { renameSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { openTestLedger } from "../../test/support/ledger/test-ledger.ts"
import { NEWEST } from "../../test/support/opencode/opencode-binary.ts"
import { createTestProject } from "../../test/support/opencode/test-project.ts"
import { startWebObserver } from "./tour/place.ts"

/** draw-observe.ts FOLDER: FOLDER/observe-light.png and observe-dark.png, from the real page of six agents' statefiles. */
const [folder] = process.argv.slice(2)
if (!folder) throw new Error("expected FOLDER; start it with ./scripts/picture observe")

/** Longer than the observer's polling interval: each step is seen. */
const STEP_MS = 600
const NO_SUCH_PROCESS = 2 ** 22 + 1

type Agent = {
  name: string
  task: string
  log: readonly string[]
  /** Minutes ago, the activity from then on, and the turns, compactions and handoffs until then. */
  steps: readonly string[]
  isGone?: true
}

const AGENTS: readonly Agent[] = [
  {
    name: "parser",
    task: "Teach the parser CRLF",
    log: ["Trimming each line eats spaces of words: dropped", "Compaction 2: 3 files changed; next: node --test"],
    steps: ["14 busy", "11 busy c1", "5 idle t1 c1", "4.2 busy t1 c1", "2 busy t1 c2", "1.1 question t1 c2"],
  },
  {
    name: "release",
    task: "Publish 2.4.0",
    log: ["The changelog is complete", "Tests pass on both platforms"],
    steps: ["13.5 idle", "7 busy", "3 idle t1", "2.5 busy t1", "0.6 permission t1"],
  },
  {
    name: "api",
    task: "Move the API to version 2",
    log: ["14 of 19 routes answer as before", "Compaction 3: the old client is the oracle"],
    steps: ["14 busy", "12 busy c1", "9.5 busy c2", "7.2 idle t1 c2", "6.8 busy t1 c2", "4 busy t1 c3"],
  },
  {
    name: "docs",
    task: "Explain the settings",
    log: ["Each setting has an example", "Handed over to a new session: goal, next steps"],
    steps: ["14 busy", "10 busy c1", "8.6 busy c1 h1", "8.2 idle t1 c1 h1", "6 busy t1 c1 h1", "1.5 idle t2 c1 h1"],
  },
  {
    name: "flaky-tests",
    task: "Find the test that fails at night",
    log: ["Fails at 23:00 UTC and never before", "The clock of the fixture is the machine's"],
    steps: ["13 busy", "12 idle t1", "10.5 busy t1", "9 idle t2", "8 busy t2", "6.4 idle t3", "5.5 busy t3"],
  },
  {
    name: "spike",
    task: "Try the new bundler",
    log: ["Half the size, twice the time: not worth it"],
    steps: ["14 busy", "10 idle t1"],
    isGone: true,
  },
]

const PERMISSION = { id: "per_1", title: "npm publish --dry-run", type: "bash" }
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

/** Writes a statefile as the writer does: complete, by rename. */
const write = ({ name, steps, isGone }: Agent, taskID: string, index: number): void => {
  const [minutesAgo, doing, ...counts] = steps[index]?.split(" ") ?? []
  const count = (letter: string): number => Number(counts.find((text) => text.startsWith(letter))?.slice(1) ?? 0)
  const ts = iso(Number(minutesAgo))
  const doneAt = (step: number): string | undefined => steps[step]?.split(" ")[1]
  let began = index
  while (doneAt(began - 1) === doing) began--
  const state = {
    c2c_session_id: name,
    c2c_alias: null,
    root_opencode_session_id: `ses_${name}`,
    opencode_pid: isGone && index === steps.length - 1 ? NO_SUCH_PROCESS : process.pid,
    plugin_started_at: iso(15),
    agent: { is_idle: doing === "idle", turn_count: count("t"), last_step: null },
    tui_focus: doing === "permission" ? { ty: doing, details: PERMISSION } : { ty: "prompt", details: null },
    pendingQuestion: doing === "question" ? QUESTION : null,
    extensions: {
      task: { id: taskID, role: name === "api" ? "planner" : "worker" },
      compactions: count("c"),
      handoffs: count("h"),
      status_since: iso(Number(steps[began]?.split(" ")[0])),
      heartbeat_at: ts,
      context_tokens: 9_100 + name.length * 1_777 + count("t") * 640,
    },
  }
  const path = `.opencode/state/live/${name}.json`
  project.write(`${path}.tmp`, JSON.stringify({ event: "state.patch", ts, state }))
  renameSync(join(project.directory, `${path}.tmp`), join(project.directory, path))
}

const taskIDs = new Map<Agent, string>()
for (const agent of AGENTS) {
  const taskID = await addTask({ title: agent.task, specification: "", definitionOfDone: "" })
  taskIDs.set(agent, taskID)
  if (!agent.isGone) await prog("start", taskID)
  for (const entry of agent.log) await prog("log", taskID, entry)
}
const observer = await startWebObserver({ project })
try {
  for (let index = 0; index < Math.max(...AGENTS.map(({ steps }) => steps.length)); index++) {
    for (const agent of AGENTS) if (index < agent.steps.length) write(agent, taskIDs.get(agent) ?? "", index)
    await wait(STEP_MS)
  }
  const photographer = join(import.meta.dirname, "photograph.mjs")
  execFileSync("node", [photographer, "observe", observer.url, join(folder, "observe")])
} finally {
  await observer.stop()
  await project.remove()
}
process.exit()
