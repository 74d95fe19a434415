import { createOpencodeClient } from "@opencode-ai/sdk/client"
import { inject } from "vitest"
import type { OpenCodeBinary } from "./opencode-binary.ts"
import { endInstance, type TestServer } from "./opencode-server.ts"
import type { TestProject } from "./test-project.ts"

/** An `opencode serve` that many tests use at once, each in its own folder; see test/e2e/global-setup.ts. */
export type SharedServer = { version: string; url: string; pid: number; home: string }

/** The server of one version; throws outside the e2e project, which starts them. */
export const sharedServer = ({ version }: OpenCodeBinary): SharedServer => {
  const found = inject("sharedServers").find((server) => server.version === version)
  if (!found) throw new Error(`no shared OpenCode ${version} runs: it is started for the tests in test/e2e`)
  return found
}

/** The shared server for one project. `stop` ends the project's instance there, as if its OpenCode had ended. */
export const joinServer = (binary: OpenCodeBinary, { directory }: Pick<TestProject, "directory">): TestServer => {
  const { url, pid } = sharedServer(binary)
  const client = createOpencodeClient({ baseUrl: url, directory })
  return { client, url, pid, stop: () => endInstance(client) }
}
