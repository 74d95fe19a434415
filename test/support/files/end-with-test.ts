import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import { onTestFinished } from "vitest"

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
