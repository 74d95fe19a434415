import { readdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { BOTH_ENDS, closeTaskProjects, type SharedTask } from "../../support/index.ts"
import { passOver, returns } from "../../support/model/pass-over-script.ts"
import { goThrough, openSharedPasses, sources } from "../../support/opencode/pass-over-project.ts"

closeTaskProjects()

const DONE = { text: "Done." }

/** The conversations of all requests, one after the other. */
const said = ({ model }: SharedTask): string => model.requests.map(({ conversation }) => conversation).join("\n\n")

const auditLines = ({ project }: SharedTask): Record<string, unknown>[] => {
  const folder = join(project.directory, ".opencode", "pass-over-logs")
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".jsonl"))
  return files.flatMap((name) =>
    project
      .read(join(".opencode", "pass-over-logs", name))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>),
  )
}

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised(
      ["pass-over.D1", "pass-over.B3", "pass-over.G1", "pass-over.E1"],
      "three delegations are allowed, the fourth, a cycle and a pass to oneself are refused with the chain",
    ),
    async () => {
      const task = await openSharedPasses(binary, {
        root: [passOver({ subagent: "coder", objective: "LEVEL-ONE" }), DONE],
        agents: {
          "LEVEL-ONE": [
            passOver({ subagent: "coder", objective: "SELF" }),
            passOver({ subagent: "second", objective: "LEVEL-TWO" }),
            returns(),
            DONE,
          ],
          "LEVEL-TWO": [
            passOver({ subagent: "coder", objective: "CYCLE" }),
            passOver({ subagent: "third", objective: "LEVEL-THREE" }),
            returns(),
            DONE,
          ],
          "LEVEL-THREE": [
            { tool: "write", input: { filePath: "src/three.ts", content: "3\n" } },
            passOver({ subagent: "fourth", objective: "LEVEL-FOUR" }),
            returns(),
            DONE,
          ],
        },
      })
      expect(await goThrough(task)).toContain("coder → completed")
      const all = said(task)
      expect(all).toContain("E003 CYCLE_DETECTED: coder would pass work to itself")
      expect(all).toContain("E003 CYCLE_DETECTED: coder is at work in this chain and waits for its result")
      expect(all).toMatch(/E002 CHAIN_DEPTH_EXCEEDED: This would be delegation 4; 3 are allowed/)
      expect(all).toMatch(/build \(ses_\w+\) → coder \(ses_\w+\) → second \(ses_\w+\) → third \(ses_\w+\) → fourth/)
      expect(all).toContain("third → completed")
      expect(all).toContain("added src/three.ts")
      expect(sources(task.project)).toEqual(["a.ts"])
    },
  )

  test(
    promised(
      ["pass-over.E2", "pass-over.E3", "pass-over.G1"],
      "a subagent whose model fails is started again, and each attempt is a line of the audit",
    ),
    async () => {
      let failures = 0
      const task = await openSharedPasses(binary, {
        root: [passOver({ subagent: "audit", objective: "FAIL-FIRST" }), DONE],
        agents: {
          "FAIL-FIRST": [() => (failures++ === 0 ? { status: 400, message: "model says no" } : returns()), DONE],
        },
        policy: { defaults: { retry_delay_ms: 10 } },
      })
      expect(await goThrough(task)).toContain("audit → completed")
      const events = auditLines(task).map(({ event }) => event)
      expect(events).toEqual(["sent", "started", "attempt_failed", "started", "returned"])
    },
  )

  test(
    promised(["pass-over.E2", "pass-over.A5"], "a subagent that fails for good is E011, with its session"),
    async () => {
      const task = await openSharedPasses(binary, {
        root: [passOver({ subagent: "audit", objective: "FAIL-ALWAYS" }), DONE],
        agents: { "FAIL-ALWAYS": [{ status: 400, message: "model says no" }] },
        policy: { defaults: { retry_delay_ms: 10, max_retries: 1 } },
      })
      const answer = await goThrough(task)
      expect(answer).toContain("audit → failed")
      expect(answer).toContain("E011 SUBAGENT_CRASHED")
      expect(answer).toContain("model says no")
      expect(answer).toMatch(/Child session: ses_/)
    },
  )

  test(promised(["pass-over.A2"], "prose is a partial output, and the third invalid return is E021"), async () => {
    const task = await openSharedPasses(binary, {
      root: [
        passOver({ subagent: "audit", objective: "PROSE" }),
        passOver({ subagent: "audit", objective: "WRONG" }),
        DONE,
      ],
      agents: {
        PROSE: [{ text: "I think it is fine, but look at line 3." }],
        WRONG: [returns({ status: "great" }), returns({ status: "great" }), returns({ status: "great" }), DONE],
      },
    })
    expect(await goThrough(task)).toContain("E021 INVALID_WORK_OUTPUT")
    const all = said(task)
    expect(all).toContain("audit → partial")
    expect(all).toContain("I think it is fine, but look at line 3.")
    expect(all).toContain("you may try 2 times more")
  })

  test(
    promised(
      ["pass-over.C2", "pass-over.F1"],
      "a policy that is not one refuses with its line, and so does an unknown agent",
    ),
    async () => {
      const task = await openSharedPasses(binary, {
        root: [passOver({ subagent: "audit", objective: "X" }), DONE],
        policy: '{\n  "defaults": {\n    "timeout_ms": "soon"\n  }\n}\n',
      })
      expect(await goThrough(task)).toContain("E030 CONFIG_INVALID: .opencode/pass-over.json:3")
      const other = await openSharedPasses(binary, { root: [passOver({ subagent: "audti", objective: "X" }), DONE] })
      const answer = await goThrough(other)
      expect(answer).toContain('E001 INVALID_SUBAGENT: There is no subagent "audti"')
      expect(answer).toContain("The nearest names are audit")
    },
  )

  test(
    promised(
      ["pass-over.F1", "pass-over.F2", "pass-over.A7"],
      "a skill is an agent, a user's own scout stays, and a known question is not paid for twice",
    ),
    async () => {
      const ask = passOver({ subagent: "skill/checker", objective: "CHECK-IT", files: ["src/a.ts"] })
      const task = await openSharedPasses(binary, {
        root: [ask, ask, passOver({ subagent: "scout", objective: "SCOUT-IT" }), DONE],
        agents: { "CHECK-IT": [returns({ decision: "approved" }), DONE], "SCOUT-IT": [returns(), DONE] },
        policy: { defaults: { cache: true } },
      })
      task.project.write(
        ".opencode/skill/checker.md",
        "---\nname: checker\ndescription: checks\nsubagent: true\npermission:\n  edit: deny\n---\nYou are the CHECKER-SKILL.\n",
      )
      task.project.write(".opencode/agent/scout.md", "---\ndescription: mine\nmode: subagent\n---\nMY-OWN-SCOUT\n")
      await goThrough(task)
      const asked = task.model
        .received("turn")
        .filter(({ conversation }) => /^\[user\] The agent build/.test(conversation))
      const checks = asked.filter(({ conversation }) => conversation.includes("CHECK-IT"))
      expect(checks[0]?.system).toContain("CHECKER-SKILL")
      expect(checks[0]?.tools).not.toContain("write")
      // One request for the work and one for the closing words; the second question makes none.
      expect(checks).toHaveLength(2)
      expect(said(task)).toMatch(/This is the stored result of pass_\d{17}_/)
      expect(asked.find(({ conversation }) => conversation.includes("SCOUT-IT"))?.system).toContain("MY-OWN-SCOUT")
    },
  )
})
