import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TestProject as VitestProject } from "vitest/node"
import { removeFolder } from "../support/files/folder-tree.ts"
import { isolatedEnvironment } from "../support/opencode/isolated-opencode.ts"
import { ALL_LINES, type OpenCodeBinary, QUICK_START } from "../support/opencode/opencode-binary.ts"
import { startServer, type TestServer } from "../support/opencode/opencode-server.ts"
import type { SharedServer } from "../support/opencode/task-project.ts"
import { setUpHome } from "../support/opencode/test-project.ts"

declare module "vitest" {
  interface ProvidedContext {
    sharedServers: readonly SharedServer[]
  }
}

/** Duration of `opencode --version` on an idle machine. */
const QUIET_START_MS = 500
/** Slowness of two idle cores that run three test files at once. */
const LEAST_SLOWNESS = 1.5

/** Ratio of OpenCode's present start time to that of an idle machine; throws if the version differs. */
const measureSlowness = ({ path, version }: OpenCodeBinary, env: Record<string, string>): number => {
  const started = performance.now()
  const { status, stdout, stderr } = spawnSync(path, ["--version"], { encoding: "utf8", env })
  const tookMs = performance.now() - started
  if (stdout.trim().replace(/^opencode v/, "") === version)
    return Math.max(LEAST_SLOWNESS, Math.round((10 * tookMs) / QUIET_START_MS) / 10)
  throw new Error(`${path} is not OpenCode ${version}: --version exited with ${status} and said '${stdout}' ${stderr}`)
}

/**
 * Checks each binary's version, measures the machine's slowness, and starts one `opencode serve` for each line. All tests that
 * need no process of their own share it, since a start takes seconds.
 */
const setUp = async (project: VitestProject): Promise<() => Promise<void>> => {
  const root = mkdtempSync(join(tmpdir(), "baton-shared-"))
  const isolated = isolatedEnvironment({ home: root, directory: root })
  const slowness = Math.max(...ALL_LINES.map((binary) => measureSlowness(binary, isolated)))
  // Workers, which start later, inherit it.
  process.env.BATON_SLOWNESS ||= String(slowness)
  project.vitest.logger.log(`Deadlines are multiplied by BATON_SLOWNESS=${process.env.BATON_SLOWNESS}.\n`)
  const servers: TestServer[] = []
  const shared = await Promise.all(
    ALL_LINES.map(async (binary): Promise<SharedServer> => {
      const home = join(root, binary.version)
      const directory = join(home, "nowhere")
      mkdirSync(directory, { recursive: true })
      setUpHome(home, binary)
      const environment = { ...isolatedEnvironment({ home, directory }), ...QUICK_START }
      const server = await startServer(binary, { directory, environment })
      servers.push(server)
      return { version: binary.version, url: server.url, pid: server.pid, home }
    }),
  )
  project.provide("sharedServers", shared)
  return async () => {
    await Promise.all(servers.map((server) => server.stop()))
    if (!process.env.BATON_KEEP_PROJECTS) await removeFolder(root)
  }
}

export default setUp
