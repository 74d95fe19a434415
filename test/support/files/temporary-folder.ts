import { mkdtempSync, realpathSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { removeFolder } from "./remove-folder.ts"

/** Creates a folder that is removed when the test ends. */
export const temporaryFolder = (): string => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "baton-test-")))
  onTestFinished(() => removeFolder(folder))
  return folder
}
