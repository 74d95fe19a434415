import { cpSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { runScript } from "../../support/files/small-checkout.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { NEWEST, REPOSITORY } from "../../support/opencode/opencode-binary.ts"

test(promised("install.E8", "a project's own zod of version 3 is not taken for Baton's"), () => {
  const folder = temporaryFolder()
  cpSync(join(REPOSITORY, ".opencode/baton/host"), join(folder, ".opencode/baton/host"), { recursive: true })
  const zod = join(folder, "node_modules/zod")
  mkdirSync(zod, { recursive: true })
  writeFileSync(join(zod, "package.json"), '{ "name": "zod", "version": "3.25.0", "main": "index.js" }')
  writeFileSync(join(zod, "index.js"), "exports.string = () => ({})\nexports.object = () => ({})\n")
  const load = join(folder, "load.ts")
  writeFileSync(
    load,
    `const { loadZod } = await import("./.opencode/baton/host/schema.ts")
console.log(await loadZod().then(() => "taken", (error) => error.message + ": " + error.cause.message))
`,
  )
  const { stdout } = runScript([NEWEST.path, "run", "--no-install", load], {
    cwd: folder,
    env: { PATH: "/usr/bin:/bin", HOME: folder, BUN_BE_BUN: "1" },
  })
  expect(stdout).toMatch(/^zod is not installed: .*: the zod that was found is older than version 4\n$/)
})
