import { rmSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { makeOwnFolder } from "../files/own-state.ts"
import { endWithTest, temporaryFolder } from "../files/with-test.ts"
import { startObserver, writeStatefile } from "./observer.ts"
import { type OpenCodeBinary, REPOSITORY } from "./opencode-binary.ts"
import { copyBundle } from "./test-project.ts"

type Start = { binary: OpenCodeBinary; cwd: string; args?: readonly string[]; environment: Record<string, string> }

/** Starts `baton observe --web`; it ends with the test. */
export const startBatonObserve = ({ binary, cwd, args = [], environment }: Start) => {
  const project = { directory: cwd, environment: { ...environment, BATON_OPENCODE: binary.path } }
  const observer = startObserver(project, ...args)
  endWithTest(observer.child)
  return observer
}

/** Resolves when it has printed its address. */
export const observePage = async (start: Start) => {
  const observer = startBatonObserve(start)
  const url = await observer.address()
  return { ...observer, url, port: Number(new URL(url).port) }
}

/** A project with the bundle and without OpenCode: the test writes its statefiles. */
export const createStatefileFolder = () => {
  const project = temporaryFolder()
  copyBundle(join(project, ".opencode"), undefined)
  symlinkSync(join(REPOSITORY, "node_modules"), join(project, ".opencode", "node_modules"))
  const environment = {
    PATH: process.env.PATH ?? "",
    HOME: project,
    TMPDIR: project,
    BATON_LEDGER: "embedded",
    BATON_STATE_KEY: "a key of this account",
  }
  const folder = makeOwnFolder({ directory: project, environment }, "live")
  return {
    project,
    environment,
    write: (name: string, state?: Record<string, unknown>) => writeStatefile(folder, name, state),
    remove: (name: string) => rmSync(join(folder, `${name}.json`)),
  }
}
