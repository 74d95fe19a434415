import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, realpathSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { createStateFolder, type StateFolder } from "../../../.opencode/baton/host/state.ts"
import { removeFolder } from "./folder-tree.ts"

/** Creates a folder that is removed when the test ends. */
export const temporaryFolder = (): string => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "baton-test-")))
  onTestFinished(() => removeFolder(folder))
  return folder
}

/** Waits at the end of the test for what is still being written into a state, before its folder is removed. */
export const endWritesWithTest = (state: StateFolder): StateFolder => {
  const { write } = state
  const writing = new Set<Promise<void>>()
  onTestFinished(async () => {
    while (writing.size > 0) await Promise.allSettled(writing)
  })
  return Object.assign(state, {
    write: (...args: Parameters<StateFolder["write"]>) => {
      const work = write(...args)
      const forget = () => void writing.delete(work)
      writing.add(work)
      work.then(forget, forget)
      return work
    },
  })
}

/** The state of a project in a temporary folder. */
export const openTestState = (projectRoot: string): StateFolder => endWritesWithTest(createStateFolder(projectRoot))

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
