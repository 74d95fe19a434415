import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { HAS_BUBBLEWRAP } from "../../support/bubblewrap.ts"
import { behindMount, CAN_MOUNT } from "../../support/faults/mounts.ts"
import {
  BOTH_ENDS,
  bash,
  endsOf,
  type ModelRequest,
  type SharedTask,
  snapshotTree,
  TASK,
  testsOnce,
} from "../../support/index.ts"
import { lastToolAnswer, passOver, returns, reviews, START } from "../../support/model/pass-over-script.ts"
import { goThrough, openPassOverProject, openSharedPasses, sources } from "../../support/opencode/pass-over-project.ts"
import { runWell, turnsOf } from "../sessions.ts"

/** OpenCode's searches need it. */
const HAS_RIPGREP = spawnSync("rg", ["--version"]).status === 0

const DONE = { text: "Done." }
const passID = (text: string): string => /\bpass_\d{17}_[0-9a-z]+/.exec(text)?.[0] ?? ""
/** A root agent's call about the pass in its last answer. */
const decide = (tool: string) => (request: ModelRequest) => ({
  tool,
  input: { pass_over_id: passID(request.conversation) },
})

const write = (filePath: string, content: string) => ({ tool: "write", input: { filePath, content } })

/** Changes one file. */
const CODE = [{ tool: "read", input: { filePath: "src/a.ts" } }, write("src/a.ts", "export const a = 2\n")]

/** The project's own files, without OpenCode's and the bundle's. */
const ownFiles = ({ project }: SharedTask) => {
  const all = Object.entries(snapshotTree(project.directory))
  return Object.fromEntries(all.filter(([path]) => !/^(?:\.opencode|\.git)(?:\/|$)/.test(path)))
}

/** The requests of subagents that this agent passed work to. */
const requestsFrom = (agent: string, { model }: SharedTask): ModelRequest[] =>
  model.received("turn").filter(({ conversation }) => conversation.startsWith(`[user] The agent ${agent}`))

/** The conversations of all requests, one after the other. */
const said = ({ model }: SharedTask): string => model.requests.map(({ conversation }) => conversation).join("\n\n")

const auditEvents = ({ project }: SharedTask): unknown[] => {
  const folder = ".opencode/pass-over-logs"
  const names = readdirSync(join(project.directory, folder), { recursive: true, encoding: "utf8" })
  const lines = names
    .filter((name) => name.endsWith(".jsonl"))
    .flatMap((name) => project.read(join(folder, name)).trim().split("\n"))
  return lines.map((line) => JSON.parse(line).event)
}

describe.each(BOTH_ENDS)(promised("pass-over.G1", "OpenCode $version"), (binary) => {
  const once = testsOnce(binary)
  test(
    promised(["pass-over.A1", "pass-over.A2", "pass-over.A5", "pass-over.F2", "passes.A2"], "a review comes back"),
    async () => {
      const task = await openSharedPasses(binary, {
        root: [passOver({ subagent: "audit", objective: "REVIEW-IT please", files: ["src/a.ts"] }), DONE],
        agents: { "REVIEW-IT": reviews(["src/a.ts", "src/text.ts"], ".split") },
      })
      task.project.write(
        "src/text.ts",
        'export const isText = true\nexport const lines = (text) => text.split("\\n")\n',
      )
      const answer = await goThrough(task)
      expect(answer).toContain("audit → completed, decision: changes_requested")
      expect(answer).toContain("Findings (1):\n- error src/text.ts:2: ")
      expect(answer).toMatch(
        HAS_RIPGREP ? /^2 files read, 1 searched, 1 sent along$/m : /^2 files read, 1 sent along$/m,
      )
      expect(answer).toMatch(/Child session: ses_[A-Za-z0-9]{20,}/)
      const [child] = requestsFrom("build", task)
      expect(child?.conversation).toContain("export const a = 1")
      expect(child?.tools).toContain("pass_over_return")
      for (const tool of ["write", "bash"]) expect(child?.tools).not.toContain(tool)
      const root = task.model.received("turn")[0]
      expect(root?.tools).toContain("pass_over")
      expect(root?.tools).not.toContain("pass_over_return")
    },
  )

  once(promised("passes.A2", "a verdict without reading is said, and no shell is named to a reader"), async () => {
    const task = await openSharedPasses(binary, {
      root: [passOver({ subagent: "audit", objective: "TRUST-ME", messages: 0 }), DONE],
      agents: { "TRUST-ME": [returns({ decision: "approved" }), DONE] },
    })
    await task.say(`Task: ${task.taskID}\n\n${START}`)
    const answer = lastToolAnswer(task.model.requests)
    expect(answer).toContain("audit → completed, decision: approved\n0 files read\n")
    const [order] = requestsFrom("build", task)
    expect(order?.tools).toContain("task_show")
    expect(order?.conversation).not.toMatch(/\bprog \w/)
  })

  test.each([
    ["with stock permissions", {}],
    ['with "allow"', { permission: { "*": "allow" } }],
    ["for the agent plan", { default_agent: "plan" }],
  ])(promised("passes.A1", "audit and scout read and search %s"), async (_what, config) => {
    const look = [
      { tool: "read", input: { filePath: "src/a.ts" } },
      { tool: "glob", input: { pattern: "src/*.ts" } },
      { tool: "grep", input: { pattern: "export const b", path: "src" } },
      { tool: "task_show", input: {} },
      { tool: "read", input: { filePath: ".env" } },
      returns(),
      DONE,
    ]
    const task = await openSharedPasses(binary, {
      root: [
        passOver({ subagent: "audit", objective: "AUDIT-IT", messages: 0 }),
        passOver({ subagent: "scout", objective: "SCOUT-IT", messages: 0 }),
        DONE,
      ],
      agents: { "AUDIT-IT": look, "SCOUT-IT": look },
      config,
    })
    task.project.write("src/found.ts", "export const b = 1\n")
    task.project.write(".env", "TOKEN=hidden\n")
    await task.say(`Task: ${task.taskID}\n\n${START}`)
    for (const agent of ["AUDIT-IT", "SCOUT-IT"]) {
      const asked = task.model
        .received("turn")
        .filter(({ conversation }) => conversation.includes(agent) && conversation.startsWith("[user] The agent"))
      for (const tool of ["read", "glob", "grep", "task_show", "task_log"]) expect(asked[0]?.tools).toContain(tool)
      for (const tool of ["edit", "write", "bash", "task", "webfetch"]) expect(asked[0]?.tools).not.toContain(tool)
      const seen = asked.at(-1)?.conversation ?? ""
      for (const part of ["export const a = 1", ...(HAS_RIPGREP ? ["src/a.ts\n", "Line 1: export const b = 1"] : [])])
        expect(seen).toContain(part)
      // Both are answers of task_show; on a busy machine the ledger may be late.
      expect(seen).toMatch(new RegExp(`${task.taskID}: "${TASK.title}" \\(|The ledger does not answer`))
      expect(seen).not.toContain("TOKEN=hidden")
    }
  })

  once(promised(["pass-over.B1", "pass-over.B2", "pass-over.A3"], "changes are held back"), async () => {
    const task = await openSharedPasses(binary, {
      root: [passOver({ subagent: "coder", objective: "CODE-IT" }), decide("pass_over_reject"), DONE],
      agents: { "CODE-IT": [...CODE, bash("echo made > src/b.ts && rm README.md"), returns(), DONE] },
    })
    task.project.write("src/mine.ts", "not committed\n")
    const before = ownFiles(task)
    await goThrough(task)
    expect(ownFiles(task)).toEqual(before)
    const answers = turnsOf(task).findLast((text) => text.includes("rejected ("))
    for (const part of [
      "modified src/a.ts",
      "added src/b.ts (by a shell command)",
      "deleted README.md (by a shell command)",
      "3 of them are pending",
    ])
      expect(answers).toContain(part)
  })

  // scripts/test warns where it is left out.
  if (HAS_BUBBLEWRAP)
    once(
      promised(
        "pass-over.B10",
        "a shell in the boundary writes in its sandbox and nowhere else, under the user's rules",
      ),
      async () => {
        const escapes = ["../../../../../escaped", "$HOME/escaped", "../../../../baton/escaped"]
        const tries = escapes.map((path) => `(echo out > "${path}") 2>&1 || echo "kept in"`).join("; ")
        const task = await openSharedPasses(binary, {
          root: [passOver({ subagent: "coder", objective: "CODE-IT" }), DONE],
          agents: {
            "CODE-IT": [
              ...CODE,
              bash(`echo made > src/b.ts; ${tries}`),
              bash("rm README.md"),
              bash("echo t > /tmp/of-a-pass && cat /tmp/of-a-pass && ls /run"),
              returns(),
              DONE,
            ],
          },
          policy: { defaults: { sandbox: "os" } },
          config: { permission: { external_directory: "allow", bash: { "*": "allow", "rm *": "deny" } } },
        })
        const answer = await goThrough(task)
        for (const part of ["modified src/a.ts", "added src/b.ts (by a shell command)"]) expect(answer).toContain(part)
        expect(answer).not.toContain("README.md")
        const child = requestsFrom("build", task).at(-1)?.conversation ?? ""
        expect(child.split("Read-only file system").length - 1).toBe(escapes.length)
        expect(child.match(/^kept in$/gm)).toHaveLength(escapes.length)
        const { directory, home } = task.project
        const places = [directory, home, join(directory, ".opencode/baton")]
        expect(places.filter((folder) => existsSync(join(folder, "escaped")))).toEqual([])
        expect(existsSync("/tmp/of-a-pass")).toBe(false)
      },
    )

  test(promised(["pass-over.B2", "pass-over.A3"], "applied changes are in the worktree"), async () => {
    const task = await openPassOverProject(binary, {
      root: [
        passOver({ subagent: "coder", objective: "CODE-IT" }),
        decide("pass_over_apply"),
        decide("pass_over_status"),
        DONE,
      ],
      agents: { "CODE-IT": [...CODE, bash("echo made > src/b.ts"), returns(), DONE] },
    })
    await runWell(task, START)
    const answer = lastToolAnswer(task.model.requests)
    expect(task.project.read("src/a.ts")).toBe("export const a = 2\n")
    expect(task.project.read("src/b.ts")).toBe("made\n")
    expect(answer).toContain("They are in the worktree (applied)")
  })

  test(promised("pass-over.C3", "a reader cannot write: by tool, by shell, or by an agent of its own"), async () => {
    const task = await openSharedPasses(binary, {
      root: [passOver({ subagent: "coder", objective: "READ-IT" }), DONE],
      agents: {
        "READ-IT": [
          write("src/x.ts", "x\n"),
          bash("echo x > src/x.ts"),
          { tool: "task", input: { subagent_type: "general", description: "d", prompt: "Write src/x.ts" } },
          passOver({ subagent: "second", objective: "WRITE-IT" }),
          returns(),
          DONE,
        ],
        "WRITE-IT": [write("src/x.ts", "x\n"), bash("echo x > src/x.ts"), returns(), DONE],
      },
      policy: { subagents: { coder: { can_modify_files: false } } },
    })
    const before = ownFiles(task)
    expect(await goThrough(task)).toContain("coder → completed")
    expect(ownFiles(task)).toEqual(before)
    expect(requestsFrom("coder", task)[0]?.tools).not.toContain("bash")
  })

  once(
    promised(
      ["pass-over.D1", "pass-over.B3", "pass-over.F1", "pass-over.E1"],
      "a chain takes no fourth pass and no cycle",
    ),
    async () => {
      const task = await openSharedPasses(binary, {
        root: [
          passOver({ subagent: "audti", objective: "UNKNOWN" }),
          passOver({ subagent: "coder", objective: "LEVEL-ONE" }),
          DONE,
        ],
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
            write("src/three.ts", "3\n"),
            passOver({ subagent: "fourth", objective: "LEVEL-FOUR" }),
            returns(),
            DONE,
          ],
        },
      })
      expect(await goThrough(task)).toContain("coder → completed")
      const all = said(task)
      expect(all).toContain('E001 INVALID_SUBAGENT: There is no subagent "audti"')
      expect(all).toContain("The nearest names are audit")
      expect(all).toContain("E003 CYCLE_DETECTED: coder would pass work to itself")
      expect(all).toContain("E003 CYCLE_DETECTED: coder is at work in this chain and waits for its result")
      expect(all).toMatch(/E002 CHAIN_DEPTH_EXCEEDED: This would be delegation 4; 3 are allowed/)
      expect(all).toMatch(/build \(ses_\w+\) → coder \(ses_\w+\) → second \(ses_\w+\) → third \(ses_\w+\) → fourth/)
      expect(all).toContain("third → completed")
      expect(all).toContain("added src/three.ts")
      expect(sources(task.project)).toEqual(["a.ts"])
    },
  )

  once(
    promised(["pass-over.E2", "pass-over.E3", "pass-over.A5"], "a failed model is tried again, then E011"),
    async () => {
      const refusal = { status: 400, message: "model says no" }
      let failures = 0
      const task = await openSharedPasses(binary, {
        root: [
          passOver({ subagent: "audit", objective: "FAIL-FIRST" }),
          passOver({ subagent: "audit", objective: "FAIL-ALWAYS" }),
          DONE,
        ],
        agents: { "FAIL-FIRST": [() => (failures++ === 0 ? refusal : returns()), DONE], "FAIL-ALWAYS": [refusal] },
        policy: { defaults: { retry_delay_ms: 10, max_retries: 1 } },
      })
      const answer = await goThrough(task)
      for (const part of ["audit → failed", "E011 SUBAGENT_CRASHED", "model says no"]) expect(answer).toContain(part)
      expect(answer).toMatch(/Child session: ses_/)
      expect(said(task)).toContain("audit → completed")
      const tried = ["sent", "started", "attempt_failed", "started"]
      expect(auditEvents(task)).toEqual([...tried, "returned", ...tried, "returned"])
    },
  )

  once(promised(["pass-over.A2"], "prose is a partial output, and the third invalid return is E021"), async () => {
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

  once(
    promised(
      ["pass-over.F1", "pass-over.F2", "pass-over.A7"],
      "a skill and a user's scout take work, and a known question is asked once",
    ),
    async () => {
      const ask = passOver({ subagent: "skill/checker", objective: "CHECK-IT", files: ["src/a.ts"], messages: 0 })
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
      const asked = requestsFrom("build", task)
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

describe.each(endsOf(0))("OpenCode $version", (binary) => {
  test.skipIf(!CAN_MOUNT)(
    promised("pass-over.B8", "of what fills the disk, what fits is carried, the rest named and left; some stays free"),
    async () => {
      const fill = "truncate -s 900M sparse.bin; head -c 30M /dev/urandom > half.bin; echo small > small.txt"
      const look = 'cd .opencode/state; df -B1 --output=size,avail . | tail -1; find . -name "*.bin" -o -name "tmp_*"'
      const task = await openPassOverProject(binary, {
        root: [passOver({ subagent: "coder", objective: "FILL-IT" }), decide("pass_over_apply"), bash(look), DONE],
        agents: { "FILL-IT": [bash(fill), returns(), DONE] },
      })
      mkdirSync(join(task.project.directory, ".opencode/state"), { recursive: true })
      await runWell(task, START, { launcher: behindMount("mount -t tmpfs -o size=64m none .opencode/state") })
      const result = turnsOf(task).find((text) => text.includes("coder → completed"))
      expect(result).toContain("Changed files (1):\n- added small.txt")
      expect(result).toMatch(/sparse\.bin.*900 MB do not fit: a pass holds 2 GB at most and leaves a twentieth/)
      expect(result).toMatch(/half\.bin.*30 MB do not fit/)
      const seen = lastToolAnswer(task.model.requests)
      const [, size, free] = /(\d+) +(\d+)/.exec(seen) ?? []
      expect(Number(free)).toBeGreaterThan(Number(size) / 20)
      expect(task.project.read("small.txt")).toBe("small\n")
    },
  )
})
