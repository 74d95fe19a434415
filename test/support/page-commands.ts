import { readFileSync } from "node:fs"
import { join } from "node:path"
import { REPOSITORY } from "./opencode/opencode-binary.ts"

/** A command of a page, and how a test runs it. */
export type Step = {
  /** As the page has it; without it a preparation that the page leaves to its reader. */
  readonly command?: string
  /** Run in its place: it needs the network or a terminal, or names what differs from machine to machine. */
  readonly instead?: string
  /** In the output, or in the newest request to the model. */
  readonly shows?: RegExp
  /** The test that runs it, and how it does: the command takes long, or is a test itself. */
  readonly by?: readonly [file: string, text: string]
}

const also = (instead: string): Step => ({ instead })
const inTask = (given: string): string => `opencode run --continue --command task "${given}"`

const ADD = 'prog add "Teach the parser CRLF" -p my-project'
const AN_ID = /\bts-[0-9a-f]{6}\b/

/** `ts-b54507` and `ID` stand for the id that was printed last. */
export const PAGES: Readonly<Record<string, readonly Step[]>> = {
  "README.md": [
    { command: "git clone <this repository> baton && cd baton", instead: "cd ~/baton" },
    { command: "./scripts/demo", by: ["test/e2e/tour/demo.test.ts", '"scripts", "demo"'] },
    { command: "./scripts/install ~/my-project --auto-task", shows: /^Files: [1-9]\d+ added/m },
    also("cd ~/my-project"),
    {
      command: "npx baton-opencode init ~/my-project",
      by: ["test/contract/install/package.test.ts", 'npx("init", "project"'],
    },
    { command: "alias prog=.opencode/baton/bin/prog" },
    { command: `${ADD} --dod "tests pass" --desc "Lines may end in CRLF."`, shows: AN_ID },
    { command: 'opencode run "Task: ts-b54507"', shows: /Task: ts-b54507[\s\S]*Lines may end in CRLF/ },
    { command: "prog show ts-b54507", shows: /^Definition of Done:\ntests pass$/m },
    { command: "/task", instead: inTask(""), shows: /ts-b54507, Teach the parser CRLF/ },
    { command: "/task ts-b54507", instead: inTask("ts-b54507"), shows: /Task: ts-b54507/ },
    { command: ".opencode/baton/bin/baton doctor", shows: /^0 broken, 0 warnings, \d+ ok$/m },
    { command: "/handoff", instead: 'opencode run --continue --command handoff "go on"', shows: /Handoff stored in/ },
    {
      command: "opencode run --command handoff",
      instead: 'opencode run --continue --command handoff "go on again"',
      shows: /Handoff stored in/,
    },
    { command: ".opencode/baton/bin/baton observe", shows: /my-project/ },
    { command: "observe --web", by: ["scripts/demonstration/tour/walk.ts", "startObserver(place.project)"] },
    also('unalias prog; eval "$(.opencode/baton/bin/baton env)"'),
    { command: "baton waiting", shows: /^Nothing waits$/m },
    { command: "prog learn", instead: 'prog learn "Use tabs here." -c style', shows: /^lrn-[0-9a-f]{6}\b/m },
    { command: ".opencode/baton/bin/baton learned", shows: /Use tabs here\./ },
    {
      command: ".opencode/baton/bin/baton search WORDS",
      instead: ".opencode/baton/bin/baton search CRLF",
      shows: /Teach the parser CRLF/,
    },
    { command: "baton passes", shows: /^No passes$/m },
    { command: "baton work", by: ["test/e2e/work/work.test.ts", "work.work("] },
    { command: "baton report" },
    { command: "baton outbox", shows: /^No records$/m },
    {
      command: "./scripts/install --global",
      instead: "~/baton/scripts/install --global",
      shows: /^Files: [1-9]\d+ added/m,
    },
    { command: "./scripts/test", by: [".ci/run", "./scripts/test"] },
  ],
  "docs/first-task.md": [
    {
      command: "./scripts/install ~/my-project --auto-task",
      instead: "~/baton/scripts/install ~/my-project --auto-task",
    },
    { command: "opencode", by: ["test/e2e/task/task-command.test.ts", "startTui"] },
    {
      command: "/task new Teach the parser CRLF",
      instead: 'opencode run --command task "new Teach the parser CRLF"',
      shows: AN_ID,
    },
    { command: "/task queue", instead: inTask("queue"), shows: /Task ts-b54507 is in the queue/ },
    { command: "/task", instead: inTask(""), shows: /ts-b54507, Teach the parser CRLF/ },
    { command: "/task CRLF", instead: 'opencode run --command task "CRLF"', shows: /ts-b54507/ },
    { command: "/task ts-b54507", instead: 'opencode run --command task "ts-b54507"', shows: /Task: ts-b54507/ },
    { command: "/task done", instead: inTask("done"), shows: /ts-b54507/ },
    { command: "/task off", instead: inTask("off"), shows: /ts-b54507/ },
    { command: 'eval "$(.opencode/baton/bin/baton env)"' },
    { command: "prog show ts-b54507", shows: /^Status: +done$/m },
    { command: "baton observe", shows: /my-project/ },
  ],
  "docs/workers.md": [
    also(
      "npm pkg set scripts.test=true && ~/baton/scripts/install ~/my-project && git add -A && git -c user.name=T -c user.email=t@t.invalid commit -qm all",
    ),
    { command: 'eval "$(.opencode/baton/bin/baton env)"' },
    { command: `${ADD} --desc "Lines may end in CRLF." --dod "check: npm test"`, shows: AN_ID },
    { command: "baton work -p my-project -n 2 --worktrees --checks", shows: /ts-b54507/ },
    also("prog show ts-b54507 | grep done"),
    { command: "baton report", shows: /: 1 tasks?, 1 done/ },
    { command: "baton work", by: ["test/e2e/work/work.test.ts", "work.work("] },
    { command: "opencode run", by: ["test/e2e/work/work.test.ts", "work.work("] },
    { command: "prog runs", shows: /ts-b54507/ },
    { command: "baton work branches", shows: /ts-b54507 is closed and merged|No branches of workers/ },
    { command: "baton work drop ID", by: ["test/e2e/work/control.test.ts", '"drop"'] },
    { command: "baton work drain", by: ["test/e2e/work/control.test.ts", '"drain"'] },
    also('prog add "Another one" -p my-project'),
    { command: 'prog log ID "Blocked: …"', shows: /^Logged to ts-b54507$/m },
    { command: 'prog unblock ID "answer"', by: ["test/e2e/work/work.test.ts", "unblock"] },
    { command: "export BATON_HOLDER=worker-1" },
    {
      command: 'while id=$(prog claim --next); do opencode run "$(sed "s/{{task_id}}/$id/g" prompts/worker.md)"; done',
    },
    also("prog show ts-b54507 | grep done"),
    { command: "baton work --help", shows: /^Usage: baton work/m },
    { command: "baton observe", shows: /my-project/ },
  ],
  "docs/tour.md": [
    ...[
      "~/baton/scripts/install ~/my-project",
      '.opencode/baton/bin/prog add "Teach the parser CRLF" -p my-project --dod "node --test passes with files from Windows" --desc "Lines may end in CRLF. Keep LF as it is."',
      'opencode run --continue "Write it now."',
      'opencode run "Write a parser for TSV files."',
      ".opencode/baton/bin/prog show ts-c2c823",
      ".opencode/baton/bin/baton learned",
      "~/baton/scripts/install ~/my-project --uninstall --purge",
    ].map((command): Step => ({ command, by: ["test/e2e/tour/tour.test.ts", "the walk does not run ${command}"] })),
    { command: "opencode", by: ["scripts/demonstration/tour/place.ts", "startTui(binary"] },
    { command: "baton observe", by: ["scripts/demonstration/tour/place.ts", 'startTerminal([BATON, "observe"]'] },
    { command: "baton observe --web", by: ["scripts/demonstration/tour/walk.ts", "startObserver(place.project)"] },
    { command: "./scripts/picture tour", by: ["test/e2e/tour/tour.test.ts", "takeTour("] },
  ],
}

/** Programs and commands that a code span begins with where it is one to type. */
const IN_SPAN =
  /^(?:(?:\.\/scripts|\.opencode\/baton\/bin)\/\w|(?:prog|baton|opencode|npx|npm) [a-z-]|opencode$|observe -|eval |\/(?:task|handoff)\b)/
const FENCE = /^```(\w*)\n([\s\S]*?)^```$/gm

/** A remark stands behind two blanks. */
const withoutRemark = (line: string): string => line.trim().split(/\s{2,}/)[0] ?? ""

const blocksIn = (text: string): string[] => {
  const fenced = [...text.matchAll(FENCE)].flatMap(([, kind, body = ""]) => {
    const lines = body.split("\n")
    if (kind === "console") return lines.flatMap((line) => (line.startsWith("$ ") ? line.slice(2) : []))
    return kind === "sh" ? lines : []
  })
  const indented = text.replaceAll(FENCE, "").match(/^ {4,}\S.*$/gm) ?? []
  return [...fenced, ...indented].map(withoutRemark).filter((line) => line !== "")
}

const spansIn = (text: string): string[] =>
  [
    ...text
      .replaceAll(FENCE, "")
      .replaceAll(/^ {4,}\S.*$/gm, "")
      .matchAll(/`([^`]+)`/g),
  ]
    .map(([, span = ""]) => span.replaceAll(/\s+/g, " "))
    .filter((span) => IN_SPAN.test(span))

/** The commands that a page tells its reader to type, each once: those of its blocks and those of its sentences. */
export const commandsIn = (page: string): string[] => {
  const text = readFileSync(join(REPOSITORY, page), "utf8")
  return [...new Set([...blocksIn(text), ...spansIn(text)])]
}
