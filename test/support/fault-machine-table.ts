import { spawnSync } from "node:child_process"
import { mkdirSync, renameSync, symlinkSync } from "node:fs"
import { isAbsolute, join } from "node:path"
import type { Fault, FaultyRunOptions } from "./fault-sequence.ts"
import { inPlaceOf, lineWith, RECORDED_DIRECTLY } from "./fault-table.ts"
import type { TaskProject } from "./task-project.ts"

/** A fault of the place OpenCode runs in, which stands for a whole run. */
export type MachineFault = Fault & { readonly options?: FaultyRunOptions }

const nothing = (): void => {}

/** A namespace of mounts that ends with the program in it, so that no mount is ever left behind. */
const OWN_MOUNTS = process.getuid?.() === 0 ? ["unshare", "--mount"] : ["unshare", "--map-root-user", "--mount"]

const canMount = (): boolean =>
  spawnSync(OWN_MOUNTS[0] ?? "", [...OWN_MOUNTS.slice(1), "sh", "-c", "mount -t tmpfs none /mnt"]).status === 0

/** Runs OpenCode where `mount` has been done; the script's working directory is the project. */
const behindMount = (mount: string): readonly string[] => [...OWN_MOUNTS, "sh", "-ec", `${mount}\nexec "$@"`, "sh"]

const FULL_DISK =
  "mount -t tmpfs -o size=64k none .opencode/state; cat /dev/zero >.opencode/state/filler 2>/dev/null || :"

const mountFault = (name: string, mount: string, reason: string): MachineFault => ({
  name,
  arrange: ({ project }) => mkdirSync(join(project.directory, ".opencode/state"), { recursive: true }),
  lift: nothing,
  expectedLog: lineWith(RECORDED_DIRECTLY, reason),
  record: "ledger",
  options: { launcher: behindMount(mount) },
})

const MOUNT_FAULTS: readonly MachineFault[] = [
  mountFault("the disk is full", FULL_DISK, "ENOSPC"),
  mountFault("the file system is read-only", "mount -t tmpfs -o ro none .opencode/state", "EROFS"),
]

/** Where nothing may be mounted. */
const STAND_IN: MachineFault = {
  name: "the disk is full",
  ...inPlaceOf(".opencode/state", (path) => symlinkSync("/nowhere/at/all", path)),
  expectedLog: lineWith(RECORDED_DIRECTLY),
  record: "ledger",
}

const chooseDiskFaults = (): readonly MachineFault[] => {
  if (canMount()) return MOUNT_FAULTS
  console.warn("!!! NOTHING MAY BE MOUNTED HERE: a link to nowhere stands in for the full and the read-only disk")
  return [STAND_IN]
}

/** What OpenCode and Baton start, git left out. */
const PROGRAMS = [
  "sh",
  "bash",
  "env",
  "cat",
  "echo",
  "head",
  "timeout",
  "sleep",
  "printf",
  "mkdir",
  "rm",
  "ls",
  "ps",
  "uname",
]

const pathWithoutGit = ({ project }: TaskProject): string => {
  const folder = join(project.home, "programs")
  mkdirSync(folder, { recursive: true })
  for (const name of PROGRAMS) {
    const path = spawnSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).stdout.trim()
    // A shell may have one of them built in.
    if (isAbsolute(path)) symlinkSync(path, join(folder, name))
  }
  return folder
}

export const MACHINE_FAULTS: readonly MachineFault[] = [
  ...chooseDiskFaults(),
  {
    name: ".opencode/node_modules is empty",
    ...inPlaceOf(".opencode/node_modules", (path) => mkdirSync(path)),
    expectedLog: lineWith("@opencode-ai/plugin|zod could not be loaded"),
    record: "outbox",
  },
  {
    name: "two copies of the bundle are loaded",
    // 1.2.15 loads only one of two plugin files with the same name.
    arrange: ({ project }) => {
      const plugins = join(project.home, ".config", "opencode", "plugins")
      renameSync(join(plugins, "compaction-handoff.ts"), join(plugins, "another-name.ts"))
    },
    lift: nothing,
    expectedLog: lineWith(
      "two copies of the bundle are loaded",
      "serving=\\S*/project/\\.opencode/baton",
      "quiet=\\S*/home/\\.config/opencode/baton",
    ),
    record: "ledger",
    options: { project: { bundle: "project-and-global" } },
  },
  {
    name: "git is missing",
    arrange: nothing,
    lift: nothing,
    record: "ledger",
    options: { environment: (task) => ({ PATH: pathWithoutGit(task) }) },
  },
  {
    name: "the project is no git repository",
    arrange: nothing,
    lift: nothing,
    expectedLog: lineWith("git state unknown", "not a git repository"),
    record: "ledger",
    options: { project: { git: false } },
  },
]
