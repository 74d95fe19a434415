/** Six agents of the picture of `baton observe --web`: what each did, by how many minutes ago it began. */

const permission = (title) => ({ tui_focus: { ty: "permission", details: { id: "per_1", title, type: "bash" } } })
const question = (header, text, ...options) => ({ pendingQuestion: { id: "que_1", header, text, options } })
const busy = (counts = {}) => ({ isIdle: false, ...counts })
const idle = (turns, counts = {}) => ({ isIdle: true, turns, ...counts })

export const AGENTS = [
  {
    name: "parser",
    task: "Teach the parser CRLF",
    log: [
      "Trimming each line eats spaces that belong to words: dropped",
      "Compaction 2: 3 files changed; next: node --test",
    ],
    steps: [
      [14, busy()],
      [11, busy({ compactions: 1 })],
      [9, busy({ ...permission("node --test"), compactions: 1 })],
      [8.4, busy({ compactions: 1 })],
      [5, idle(1, { compactions: 1 })],
      [4.2, busy({ turns: 1, compactions: 1 })],
      [2, busy({ turns: 1, compactions: 2 })],
      [
        1.1,
        busy({
          turns: 1,
          compactions: 2,
          ...question(
            "Line ends",
            "Files from Windows end in CRLF. Which end should be written back?",
            "The one that was read",
            "Always LF",
            "As the settings say",
          ),
        }),
      ],
    ],
  },
  {
    name: "release",
    task: "Publish 2.4.0",
    log: ["The changelog is complete", "Tests pass on both platforms"],
    steps: [
      [13.5, idle(0)],
      [7, busy()],
      [3, idle(1)],
      [2.5, busy({ turns: 1 })],
      [0.6, busy({ turns: 1, ...permission("npm publish --dry-run") })],
    ],
  },
  {
    name: "api",
    task: "Move the API to version 2",
    log: ["14 of 19 routes answer as before", "Compaction 3: the old client is the oracle"],
    steps: [
      [14, busy()],
      [12, busy({ compactions: 1 })],
      [9.5, busy({ compactions: 2 })],
      [7.2, idle(1, { compactions: 2 })],
      [6.8, busy({ turns: 1, compactions: 2 })],
      [4, busy({ turns: 1, compactions: 3 })],
    ],
  },
  {
    name: "docs",
    task: "Explain the settings",
    log: ["Each setting has an example", "Handed over to a new session: goal, next steps"],
    steps: [
      [14, busy()],
      [10, busy({ compactions: 1 })],
      [8.6, busy({ compactions: 1, handoffs: 1 })],
      [8.2, idle(1, { compactions: 1, handoffs: 1 })],
      [6, busy({ turns: 1, compactions: 1, handoffs: 1 })],
      [1.5, idle(2, { compactions: 1, handoffs: 1 })],
    ],
  },
  {
    name: "flaky-tests",
    task: "Find the test that fails at night",
    log: ["Fails at 23:00 UTC and never before", "The clock of the fixture is the machine's"],
    steps: [
      [13, busy()],
      [12, idle(1)],
      [10.5, busy({ turns: 1 })],
      [9, idle(2)],
      [8, busy({ turns: 2 })],
      [6.4, idle(3)],
      [5.5, busy({ turns: 3 })],
    ],
  },
  {
    name: "spike",
    task: "Try the new bundler",
    log: ["Half the size, twice the time: not worth it"],
    isGone: true,
    steps: [
      [14, busy()],
      [10, idle(1)],
    ],
  },
]
