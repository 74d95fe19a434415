import { rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import type { Log } from "../log.ts"
import type { RunProcess } from "../process.ts"
import { bundleRoot } from "../project.ts"
import { field, loadZod, text } from "../schema.ts"
import { cutTextStart } from "../text.ts"
import { readOwnTextSync } from "../untrusted.ts"

/** A slow network; nothing waits for it. */
const DEADLINE_MS = 120_000

/** The package.json that Baton writes before it installs: one that is found is of an installation that was cut short. */
const BEGUN = "{}\n"
/** As OpenCode 1 writes it, where there is none. */
const IGNORED = "node_modules\npackage.json\npackage-lock.json\nbun.lock\n.gitignore\n"

/** The version that a clone of Baton is locked to; any of the fourth beside a bundle that was copied by hand. */
const wantedVersion = (root: string): string => {
  try {
    return (
      text(
        field(JSON.parse(readOwnTextSync(join(root, "package.json"), { isForeign: true })), "dependencies", "zod"),
      ) ?? "4"
    )
  } catch {
    return "4"
  }
}

const hasZod = (): Promise<boolean> =>
  loadZod().then(
    () => true,
    () => false,
  )

/** @returns false for another file of that name */
const putFile = (path: string, text: string): boolean => {
  try {
    writeFileSync(path, text, { flag: "wx" })
    return true
  } catch {
    // It is there.
    return readOwnTextSync(path, { isForeign: true }) === text
  }
}

/**
 * OpenCode 1 installs what plugins need into `.opencode`; OpenCode 2 does not. Where zod did not come along with the bundle, as in a
 * clone, the package manager in OpenCode's own binary brings it, once. A package.json that is there already is not touched: doctor says
 * what to do.
 */
export const bringZod = async (run: RunProcess, log: Log): Promise<void> => {
  if (await hasZod()) return
  const folder = dirname(bundleRoot)
  const manifest = join(folder, "package.json")
  // Without one, the nearest above would be changed.
  if (process.versions.bun === undefined || !putFile(manifest, BEGUN)) return
  putFile(join(folder, ".gitignore"), IGNORED)
  const version = wantedVersion(dirname(folder))
  log.info("zod is being installed into .opencode, once", { version })
  const outcome = await run([process.execPath, "add", "--exact", `zod@${version}`], {
    cwd: folder,
    deadlineMs: DEADLINE_MS,
    env: { BUN_BE_BUN: "1" },
  })
  if (outcome.kind === "exited" && outcome.exitCode === 0)
    return log.info("zod is installed", { isFound: await hasZod() })
  // So that the next start tries again.
  rmSync(manifest, { force: true })
  const reason = outcome.kind === "exited" ? cutTextStart(outcome.stderr, 300) : outcome.kind
  log.warn("zod could not be installed: records wait in the outbox; ./scripts/install brings it along", { reason })
}
