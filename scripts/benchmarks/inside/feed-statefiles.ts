/**
 * feed-statefiles.ts FOLDER AGENTS PATCHES_PER_SECOND TASK,TASK,…: writes the statefiles of as many agents until it is killed.
 * All agents are busy and idle in turn, ask, and are compacted; agent 0's name holds the time of its file's write.
 */
import { writeStatefile } from "../../../test/support/opencode/observer.ts"

const [folder = "", agents = "", rate = "", tasks = ""] = process.argv.slice(2)
const taskIDs = tasks.split(",")
const [TURN_PATCHES, WAIT_PATCHES, COMPACTION_PATCHES] = [100, 10, 400]
const QUESTION = { id: "per_1", title: "bash", type: "bash" }

const write = (agent: number, patches: number): void => {
  const now = new Date()
  const at = now.toISOString()
  const turns = Math.floor(patches / TURN_PATCHES)
  const isWaiting = patches % TURN_PATCHES > TURN_PATCHES - WAIT_PATCHES && agent % 2 === 0
  const last_step = { event_type: "session.idle", at, details: { session_id: `ses_${agent}` } }
  const task = { id: taskIDs[agent % taskIDs.length], role: "worker" }
  const compactions = Math.floor(patches / COMPACTION_PATCHES)
  const state = {
    c2c_alias: agent === 0 ? `agent-0 ${now.getTime()}` : null,
    state_last_updated_at: at,
    agent: { is_idle: turns % 2 === 1, turn_count: turns, step_count: turns, last_step },
    tui_focus: isWaiting ? { ty: "permission", details: QUESTION } : { ty: "prompt", details: null },
    extensions: { task, compactions, context_tokens: 1_000 + patches, heartbeat_at: at },
  }
  writeStatefile(folder, `agent-${agent}`, state, at)
}

for (let agent = 0; agent < Number(agents); agent++) {
  // Spreads the agents over time and over the phases of a turn.
  let patches = agent * 7
  setTimeout(() => setInterval(() => write(agent, patches++), 1_000 / Number(rate)), agent)
}
