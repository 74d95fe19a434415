import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { OpenCodeBinary } from "../../../test/support/opencode-binary.ts"
import { eventually, type TestServer } from "../../../test/support/opencode-server.ts"
import type { Script } from "../../../test/support/scripted-model.ts"
import type { ProjectOptions } from "../../../test/support/test-project.ts"
import { type BenchProject, usePlugin, withBenchProject, withServer } from "../bench-project.ts"
import type { Sample } from "./sample.ts"

/** One of two servers that do the same, with the bundle and without it. */
export type Arm = BenchProject & {
  readonly isWithBundle: boolean
  readonly server: TestServer
  sample(): Promise<Sample>
  /** Calls the dispose hooks of all directories, as OpenCode does where it can, and looks at what is left. */
  dispose(): Promise<Sample>
}

export type Both<T> = { readonly with: T; readonly without: T }

/** On a busy machine the bundle leaves a ledger that did not answer alone for a while. */
const QUIET_DEADLINE_MS = 300_000

const filesIn = (folder: string): string[] => {
  try {
    return readdirSync(folder)
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return []
    throw error
  }
}

/** What these directories have recorded has reached the ledger, so that no program runs for it any more. */
export const untilDelivered = (directories: readonly string[], isRecorded: () => boolean = () => true) =>
  eventually(
    "an empty outbox",
    () => {
      const isEmpty = (directory: string) =>
        !filesIn(join(directory, ".opencode/state/outbox")).some((name) => name.endsWith(".json"))
      return (isRecorded() && directories.every(isEmpty)) || undefined
    },
    QUIET_DEADLINE_MS,
  )

const ask = async (url: string): Promise<Sample> => (await (await fetch(url)).json()) as Sample

const withArm = <T>(
  binary: OpenCodeBinary,
  script: Script,
  options: Partial<ProjectOptions>,
  isWithBundle: boolean,
  use: (arm: Arm) => Promise<T>,
): Promise<T> =>
  withBenchProject(binary, script, options, async (opened) => {
    const { project } = opened
    const folder = usePlugin(opened, "soak-probe.ts")
    const file = join(project.home, "probe.url")
    const environment = { BATON_BENCH_FILE: file, ...(isWithBundle ? { BATON_BENCH_PLUGINS: folder } : {}) }
    return withServer(opened, environment, (server) => {
      const url = () => readFileSync(file, "utf8")
      return use({
        ...opened,
        isWithBundle,
        server,
        sample: () => ask(url()),
        dispose: () => ask(`${url()}dispose`),
      })
    })
  })

/** Hands `use` two servers of one OpenCode, each with a project, a model and a home of its own. */
export const withArms = <T>(
  binary: OpenCodeBinary,
  script: Script,
  options: Partial<ProjectOptions>,
  use: (arms: Both<Arm>) => Promise<T>,
): Promise<T> =>
  withArm(binary, script, options, false, (without) =>
    withArm(binary, script, options, true, (withBundle) => use({ with: withBundle, without })),
  )

/** The same on both sides at once, so that what slows the machine slows both. */
export const onBoth = async <Side, T>(both: Both<Side>, work: (side: Side) => Promise<T>): Promise<Both<T>> => {
  const [withBundle, without] = await Promise.all([work(both.with), work(both.without)])
  return { with: withBundle, without }
}
