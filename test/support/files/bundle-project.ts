import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { stateRoot } from "../../../.opencode/baton/host/project.ts"
import { makeState } from "../../../.opencode/baton/host/state-mark.ts"
import { type OpenCodeBinary, REPOSITORY } from "../opencode/opencode-binary.ts"
import { copyBundle } from "../opencode/test-project.ts"
import { removeFolder } from "./folder-tree.ts"
import { temporaryFolder } from "./with-test.ts"

/**
 * Copies the bundle once for the calling file or `describe`.
 *
 * @returns creates a project for one test, with an own state and with links to the bundle, whose programs run on an OpenCode binary
 */
export const shareBundle = () => {
  let bundle: string
  beforeAll(() => {
    bundle = mkdtempSync(join(tmpdir(), "baton-bundle-"))
    copyBundle(bundle, undefined)
    symlinkSync(join(REPOSITORY, "node_modules"), join(bundle, "node_modules"))
  })
  afterAll(() => removeFolder(bundle))
  return (binary: OpenCodeBinary) => {
    const project = temporaryFolder()
    mkdirSync(join(project, ".opencode"))
    symlinkSync(join(bundle, "baton"), join(project, ".opencode", "baton"))
    makeState(stateRoot(project))
    const { PATH, BATON_STATE_KEY } = process.env
    const machine = { PATH, BATON_STATE_KEY, HOME: project, TMPDIR: project, TZ: "UTC" }
    const env = { ...machine, BATON_OPENCODE: binary.path, BATON_LEDGER: "embedded", BATON_COPIES: "off" }
    const options = { cwd: project, encoding: "utf8", env, maxBuffer: 64 * 1024 * 1024 } as const
    const run = (program: string, ...args: string[]) =>
      spawnSync(join(project, ".opencode/baton/bin", program), args, options)
    return {
      project,
      options,
      /** Writes a file of the project; what is no text, as JSON. */
      write: (path: string, content: unknown): void => {
        mkdirSync(dirname(join(project, path)), { recursive: true })
        writeFileSync(join(project, path), typeof content === "string" ? content : JSON.stringify(content))
      },
      baton: (...args: string[]) => run("baton", ...args),
      prog: (...args: string[]) => run("prog", ...args),
    }
  }
}
