import { mkdtempSync, realpathSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { removeFolder } from "./remove-folder.ts"

/** A new folder that is removed when the test that asked for it ends. */
export const temporaryFolder = (): string => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "baton-test-")))
  onTestFinished(() => removeFolder(folder))
  return folder
}
