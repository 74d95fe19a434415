import { execFileSync } from "node:child_process"
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { basename, dirname, join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { isNotFound } from "../../../.opencode/baton/host/log.ts"
import { MARK } from "../../../.opencode/baton/host/state-mark.ts"
import { listTree } from "../files/folder-tree.ts"
import { makeOwnFolder } from "../files/own-state.ts"
import { runOpenCode } from "../opencode/opencode-run.ts"
import type { Fault, Scene } from "./fault.ts"
import { COMPANION_MESSAGE } from "./fault-claim-table.ts"
import { stateFolder } from "./fault-stored-table.ts"

const makePipe = (path: string): void => void execFileSync("mkfifo", [path])

/** Replaces each stored task by what is no file of this account's; what is still there at the end is taken away. */
const replacedTasks = (what: string, replace: (path: string) => void): Fault => ({
  name: `stored tasks are ${what}`,
  slots: ["stored tasks"],
  when: "resume",
  needs: ["resume"],
  arrange: (scene) => {
    const folder = stateFolder(scene, "tasks")
    for (const name of existsSync(folder) ? readdirSync(folder) : []) {
      rmSync(join(folder, name), { recursive: true })
      replace(join(folder, name))
    }
  },
  lift: (scene) => {
    const folder = stateFolder(scene, "tasks")
    for (const name of existsSync(folder) ? readdirSync(folder) : [])
      if (!lstatSync(join(folder, name)).isFile()) rmSync(join(folder, name), { recursive: true })
  },
})

const STRANGER = "From a stranger."

const plantForeign = (scene: Scene): void => {
  const entry = { kind: "log", taskID: scene.taskID, message: STRANGER }
  mkdirSync(stateFolder(scene, "outbox"), { recursive: true })
  const record = JSON.stringify({ version: 1, createdAt: "2026-01-01T00:00:00.000Z", entry })
  writeFileSync(join(stateFolder(scene, "outbox"), "0000000000001-000000-aaaaaaaa.json"), record)
  symlinkSync("../../../sibling", stateFolder(scene, "learning"))
  symlinkSync("/dev/zero", stateFolder(scene, "unfinished.json"))
}

/** An OpenCode that ended before it looked leaves the state where it is. */
const removeForeign = async (scene: Scene): Promise<void> => {
  if ((await scene.ledger.messages(scene.taskID)).includes(STRANGER))
    scene.complain("a record that came with the repository is in the ledger")
  if (!existsSync(stateFolder(scene, MARK))) rmSync(stateFolder(scene, ""), { recursive: true, force: true })
  const folder = join(scene.project.directory, ".opencode")
  for (const name of readdirSync(folder).filter((each) => each.startsWith("state.foreign-")))
    rmSync(join(folder, name), { recursive: true })
}

const filesIn = (scene: Scene, folder: string): string[] => {
  const top = stateFolder(scene, folder)
  return existsSync(top) ? listTree(top).map((path) => join(top, path)) : []
}

const DAMAGE_EVERY_MS = 20

/** Cuts what a pass has stored as soon as it has returned, once. */
const damageContents = (scene: Scene): void => {
  const damaged = new Set<string>()
  const damage = (path: string): void => {
    if (damaged.has(path) || !/\/files\/store\/objects\/(?:..\/[0-9a-f]{38}|pack\/.*\.pack)$/.test(path)) return
    damaged.add(path)
    // Git writes them read-only.
    chmodSync(path, 0o644)
    truncateSync(path, Math.floor(lstatSync(path).size / 2))
  }
  const timer = setInterval(() => {
    try {
      const files = filesIn(scene, "pass-over")
      const records = files.filter((path) => basename(path) === "pass.json")
      const returned = records.filter((path) => readFileSync(path, "utf8").includes('"state":"returned"'))
      for (const record of returned) files.filter((path) => path.startsWith(dirname(record))).forEach(damage)
    } catch (error) {
      // Baton moves files meanwhile.
      if (!isNotFound(error)) throw error
    }
  }, DAMAGE_EVERY_MS)
  scene.onEnd(() => clearInterval(timer))
}

/** Longer than another process waits for a silent holder. */
const SILENT_SECONDS = 600
const LONGEST_STANDSTILL_MS = 15_000

/** Stops OpenCode for a while; a second OpenCode starts and finds locks whose times are ten minutes old. */
const standStill = (scene: Scene, delayMs: number): void => {
  const goOn = scene.suspendOpenCode()
  const at = Date.now() / 1000 - SILENT_SECONDS
  for (const path of filesIn(scene, "")) if (/lock$|owner/.test(basename(path))) utimesSync(path, at, at)
  const { binary, project, environment } = scene
  const other = runOpenCode(COMPANION_MESSAGE, { binary, project, environment })
  scene.follow(
    Promise.race([other, wait(LONGEST_STANDSTILL_MS)])
      .then(() => wait(delayMs))
      .finally(goOn),
  )
  scene.follow(other)
}

/** Faults of what is in the state's folder without being Baton's own. */
export const TRUST_FAULTS: readonly Fault[] = [
  replacedTasks("named pipes", makePipe),
  replacedTasks("links to a device", (path) => symlinkSync("/dev/zero", path)),
  replacedTasks("links out of the project", (path) => symlinkSync("../../../../sibling/secret.txt", path)),
  {
    name: "the outbox's lock is a named pipe",
    slots: ["outbox", ".opencode/state"],
    arrange: ({ project }) => makePipe(join(makeOwnFolder(project, "outbox"), "lock")),
    lift: ({ project }) => rmSync(join(makeOwnFolder(project, "outbox"), "lock"), { force: true }),
  },
  {
    name: "the state came with the repository",
    slots: ["outbox", ".opencode/state", "writer"],
    arrange: plantForeign,
    lift: removeForeign,
  },
  {
    name: "stored contents of a pass are damaged",
    slots: ["contents"],
    when: "running",
    needs: ["code"],
    arrange: damageContents,
  },
  // On OpenCode 2 the plugins run in a process of their own below the one that is started.
  { name: "OpenCode stands still", slots: ["companion", "kill"], when: "running", isOf1: true, arrange: standStill },
]
