import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, realpathSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { removeFolder } from "./folder-tree.ts"

/** Creates a folder that is removed when the test ends. */
export const temporaryFolder = (): string => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "baton-test-")))
  onTestFinished(() => removeFolder(folder))
  return folder
}

/** Kills a child process at the end of the test and waits for its end, so that it writes nothing into a removed folder. */
export const endWithTest = <Child extends ChildProcess>(child: Child): Child => {
  const ended = once(child, "exit").catch(() => {})
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill("SIGKILL")
    await ended
  })
  return child
}
