import { spawn } from "node:child_process"
import { chmodSync, mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { readProcesses } from "../../files/process-table.ts"
import { liveFiles, liveFolder, recordingWriter } from "../../opencode/live-stream.ts"
import { runOpenCode } from "../../opencode/opencode-run.ts"
import type { TaskProject } from "../../opencode/task-project.ts"
import type { Fault, Scene } from "../fault.ts"
import { findProcessesOf } from "../fault-leftovers.ts"
import { stateFolder } from "../fault-stored-table.ts"

/** Message of the project's second OpenCode; the scripted agent answers it with a word. */
export const COMPANION_MESSAGE = "COMPANION-OF-THE-STORM: what time is it?"

const READ_EVERY_MS = 20

const writerFault = (name: string, argv: (task: TaskProject) => string): Fault => ({
  name: `the state writer ${name}`,
  slots: ["writer"],
  needs: ["liveState"],
  options: { environment: (task) => ({ BATON_STATE_WRITER: argv(task) }) },
})

const shell = (script: string) => () => JSON.stringify(["/bin/sh", "-c", script])

/** Sends invalid lines to the embedded writer before the valid ones. */
const mixedLines = ({ project, binary }: TaskProject): string => {
  const script = join(project.directory, ".opencode/baton/live-state/state-writer.ts")
  const writer = `BUN_BE_BUN=1 '${binary.path}' --no-env-file --config=/dev/null run --no-install '${script}' '${project.directory}'`
  const garbage = 'printf \'no json\\n[1]\\n\\377\\376\\n{"event":"state.patch"}\\n\''
  return JSON.stringify(["/bin/sh", "-c", `{ ${garbage}; head -c 2000000 /dev/zero; echo; exec cat; } | ${writer}`])
}

const isWriter = (line: string): boolean => /state-writer\.ts|stream\.jsonl/.test(line)

const killWriters = async ({ project }: Scene): Promise<void> => {
  for (const line of (await findProcessesOf(project)).filter(isWriter)) {
    const pid = Number(line.split(" ")[0])
    const isStill = (await readProcesses(process.platform)).some((found) => found.pid === pid)
    if (isStill) spawn("kill", ["-9", String(pid)], { stdio: "ignore" })
  }
}

const killedWriter = (name: string, options: Pick<Fault, "options">): Fault => ({
  name: `${name} is killed`,
  slots: ["writer"],
  when: "running",
  needs: ["liveState"],
  ...options,
  arrange: async (scene, delayMs) => {
    await killWriters(scene)
    const again = new Promise<void>((resolve) => setTimeout(resolve, delayMs)).then(() => killWriters(scene))
    scene.follow(again)
  },
})

const readAllTheTime = (scene: Scene): void => {
  const { directory } = scene.project
  const timer = setInterval(() => {
    for (const name of liveFiles(directory)) {
      try {
        JSON.parse(readFileSync(join(liveFolder(directory), name), "utf8"))
      } catch (error) {
        // A writer that ends with its project may remove its file.
        if (error instanceof SyntaxError) scene.complain(`a reader saw half of ${name}: ${error.message}`)
      }
    }
  }, READ_EVERY_MS)
  scene.onEnd(() => clearInterval(timer))
}

const allowLiveFolder = (mode: number) => (task: TaskProject) => {
  mkdirSync(stateFolder(task, "live"), { recursive: true })
  chmodSync(stateFolder(task, "live"), mode)
}

export const LIVE_STATE_FAULTS: readonly Fault[] = [
  writerFault("is not there", () => JSON.stringify(["/nonexistent/writer"])),
  writerFault("exits at once", shell("exit 3")),
  writerFault("never reads", shell("exec sleep 10")),
  writerFault("talks on both streams", shell("while read -r line; do echo out; echo err >&2; done")),
  writerFault("will not end", shell("trap '' TERM HUP INT; cat >/dev/null; sleep 5")),
  writerFault("gets lines that it cannot use", mixedLines),
  killedWriter("the state writer", {
    options: {
      environment: ({ project }) => ({ BATON_STATE_WRITER: recordingWriter(join(project.home, "stream.jsonl")) }),
    },
  }),
  killedWriter("the embedded state writer", {}),
  {
    name: "a reader reads the statefile while it is written",
    slots: ["reader"],
    when: "any",
    needs: ["liveState"],
    arrange: readAllTheTime,
  },
  {
    name: "the folder of the live state may not be written",
    slots: ["writer", ".opencode/state"],
    when: "any",
    needs: ["liveState"],
    arrange: allowLiveFolder(0o555),
    lift: allowLiveFolder(0o755),
  },
  {
    name: "a second OpenCode runs in the project",
    slots: ["companion"],
    // Two processes cannot create OpenCode's database at once.
    when: "running",
    arrange: ({ binary, project, environment, follow }) => {
      follow(runOpenCode(COMPANION_MESSAGE, { binary, project, environment: { ...environment } }))
    },
  },
]
