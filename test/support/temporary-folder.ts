import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"

/** A new folder that is removed when the test that asked for it ends. */
export const temporaryFolder = (): string => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "baton-test-")))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
