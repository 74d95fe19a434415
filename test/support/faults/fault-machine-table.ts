import { spawnSync } from "node:child_process"
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { isAbsolute, join } from "node:path"
import type { TaskProject } from "../opencode/task-project.ts"
import type { CompactionFault } from "./fault.ts"
import { inPlaceOf, lineWith, RECORDED_DIRECTLY } from "./fault-table.ts"
import { behindMount, CAN_MOUNT } from "./mounts.ts"

const FULL_DISK =
  "mount -t tmpfs -o size=64k none .opencode/state; cat /dev/zero >.opencode/state/filler 2>/dev/null || :"

const mountFault = (name: string, mount: string, reason: string): CompactionFault => ({
  name,
  slots: [".opencode/state"],
  refuses: "disk",
  losesState: true,
  arrange: ({ project }) => void mkdirSync(join(project.directory, ".opencode/state"), { recursive: true }),
  expectedLog: lineWith(RECORDED_DIRECTLY, reason),
  options: { launcher: behindMount(mount) },
})

const MOUNT_FAULTS: readonly CompactionFault[] = [
  mountFault("the disk is full", FULL_DISK, "ENOSPC"),
  mountFault("the file system is read-only", "mount -t tmpfs -o ro none .opencode/state", "EROFS"),
]

/** Used on machines without mount permission. */
const STAND_IN: CompactionFault = {
  name: "the disk is full",
  slots: [".opencode/state"],
  refuses: "disk",
  ...inPlaceOf(".opencode/state", (path) => writeFileSync(path, "")),
  expectedLog: lineWith(RECORDED_DIRECTLY),
}

const chooseDiskFaults = (): readonly CompactionFault[] => {
  if (CAN_MOUNT) return MOUNT_FAULTS
  console.warn("!!! NOTHING MAY BE MOUNTED HERE: a file in its place stands in for the full and the read-only disk")
  return [STAND_IN]
}

/** The plugin package in the project and in OpenCode's global folder: zod is found in either. */
const packagesOf = ({ project }: TaskProject): [string, string][] =>
  [join(project.directory, ".opencode"), join(project.home, ".config/opencode")].map((folder, index) => [
    join(folder, "node_modules"),
    join(project.home, `packages-${index}`),
  ])

/** Both folders of packages are empty. */
export const withoutPackages: { arrange(task: TaskProject): void; lift(task: TaskProject): void } = {
  arrange: (task) => {
    for (const [path, aside] of packagesOf(task)) {
      renameSync(path, aside)
      mkdirSync(path)
    }
  },
  lift: (task) => {
    for (const [path, aside] of packagesOf(task)) {
      rmSync(path, { recursive: true })
      renameSync(aside, path)
    }
  },
}

/** The programs that OpenCode and Baton start, without git. */
const PROGRAMS = "sh bash env cat echo head timeout sleep printf mkdir rm ls ps uname".split(" ")

const pathWithoutGit = ({ project }: TaskProject): string => {
  const folder = join(project.home, "programs")
  mkdirSync(folder, { recursive: true })
  for (const name of PROGRAMS) {
    const path = spawnSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).stdout.trim()
    // Some of them may be built into the shell.
    if (isAbsolute(path)) symlinkSync(path, join(folder, name))
  }
  return folder
}

/** Faults of the machine that OpenCode runs on, each for a whole run. */
export const MACHINE_FAULTS: readonly CompactionFault[] = [
  ...chooseDiskFaults(),
  {
    name: "the plugin package is missing",
    isOf1: true,
    ...withoutPackages,
    expectedLog: lineWith("@opencode-ai/plugin|zod is not installed"),
    record: "outbox",
    refuses: "ledger",
  },
  {
    name: "two copies of the bundle are loaded",
    // 1.2.15 loads only one of two plugin files with the same name.
    arrange: ({ project }) => {
      const plugins = join(project.home, ".config", "opencode", "plugins")
      renameSync(join(plugins, "compaction-handoff.ts"), join(plugins, "another-name.ts"))
    },
    expectedLog: lineWith(
      "two copies of the bundle are loaded",
      "serving=\\S*/project/\\.opencode/baton",
      "quiet=\\S*/home/\\.config/opencode/baton",
    ),
    options: { project: { bundle: "project-and-global" } },
  },
  {
    name: "git is missing",
    // The folder of programs replaces PATH.
    slots: ["git", "prog"],
    options: { environment: (task) => ({ PATH: pathWithoutGit(task) }) },
  },
  {
    name: "the project is no git repository",
    slots: ["git"],
    expectedLog: lineWith("git state unknown"),
    options: { project: { git: false } },
  },
]
