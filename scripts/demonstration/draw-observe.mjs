/** draw-observe.mjs OPENCODE FOLDER: FOLDER/observe-light.png and observe-dark.png, from the real page of real statefiles. */
import { execFileSync, spawn } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, renameSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { AGENTS } from "./observe-scene.mjs"
import { photographPage } from "./photograph-page.mjs"

const [opencode, pictures] = process.argv.slice(2)
if (!opencode || !pictures) throw new Error("expected OPENCODE FOLDER; start it with ./scripts/picture observe")

/** Longer than the observer takes to look again: each step is seen. */
const STEP_MS = 600
const NO_SUCH_PROCESS = 2 ** 22 + 1
const SIZE = { width: 1180, height: 830 }

const project = join(mkdtempSync(join(tmpdir(), "scene-")), "my-project")
const bundle = join(project, ".opencode", "baton")
cpSync(join(import.meta.dirname, "..", "..", ".opencode", "baton"), bundle, { recursive: true })
// As OpenCode puts it there at its first start.
symlinkSync(join(import.meta.dirname, "..", "..", "node_modules"), join(project, ".opencode", "node_modules"))
const live = join(project, ".opencode", "state", "live")
mkdirSync(live, { recursive: true })
const env = {
  PATH: process.env.PATH,
  HOME: project,
  TMPDIR: project,
  BATON_LEDGER: "embedded",
  BATON_RUNTIME: opencode,
}
const prog = (...args) =>
  execFileSync(join(bundle, "bin", "prog"), args, { cwd: project, env, encoding: "utf8" }).trim()

const startedAt = Date.now()
const iso = (minutesAgo) => new Date(startedAt - minutesAgo * 60_000).toISOString()
const write = ({ name, taskID, isGone, index }, [minutesAgo, step], isLast) => {
  const { isIdle, turns = 0, compactions = 0, handoffs = 0, tui_focus = { ty: "prompt", details: null } } = step
  const ts = iso(minutesAgo)
  const state = {
    c2c_session_id: name,
    c2c_alias: null,
    root_opencode_session_id: `ses_${name}`,
    opencode_pid: isGone && isLast ? NO_SUCH_PROCESS : process.pid,
    plugin_started_at: iso(15),
    agent: { is_idle: isIdle, turn_count: turns, last_step: null, provider_id: "scripted", model_id: "model" },
    tui_focus,
    pendingQuestion: step.pendingQuestion ?? null,
    extensions: {
      task: { id: taskID, role: index === 2 ? "planner" : "worker" },
      compactions,
      handoffs,
      heartbeat_at: ts,
      context_tokens: 9_100 + index * 1_777 + turns * 640,
    },
  }
  const path = join(live, `${name}.json`)
  writeFileSync(`${path}.tmp`, JSON.stringify({ event: "state.patch", ts, state }))
  renameSync(`${path}.tmp`, path)
}

const agents = AGENTS.map((agent, index) => {
  const taskID = prog("add", agent.task, "-p", "my-project")
  if (!agent.isGone) prog("start", taskID)
  for (const entry of agent.log) prog("log", taskID, entry)
  return { ...agent, taskID, index }
})

const observer = spawn(join(bundle, "bin", "baton"), ["observe", "--web"], {
  cwd: project,
  env: { ...env, BATON_OPENCODE: opencode },
  stdio: ["ignore", "pipe", "inherit"],
})
try {
  const url = await new Promise((resolve, reject) => {
    observer.on("exit", (code) => reject(new Error(`baton observe --web ended with ${code}`)))
    observer.stdout.on("data", (text) => {
      const found = /http:\/\/\S+/.exec(String(text))
      if (found) resolve(found[0])
    })
  })
  const longest = Math.max(...agents.map(({ steps }) => steps.length))
  for (let index = 0; index < longest; index++) {
    for (const agent of agents) {
      const step = agent.steps[index]
      if (step) write(agent, step, index === agent.steps.length - 1)
    }
    await wait(STEP_MS)
  }
  await photographPage({
    url,
    prefix: join(pictures, "observe"),
    size: SIZE,
    ready: async (page) => {
      await page.getByText("Try the new bundler").waitFor()
      await page.getByText("Tests pass on both platforms").waitFor()
      await page.locator(".layer.question").first().waitFor({ state: "attached" })
      await wait(STEP_MS)
    },
  })
} finally {
  observer.kill("SIGTERM")
}
