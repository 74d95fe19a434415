import type { OpenCodeBinary } from "../../test/support/opencode-binary.ts"
import type { Script } from "../../test/support/scripted-model.ts"
import { type BenchProject, withBenchProject } from "./bench-project.ts"
import { linkPeer } from "./peer-packages.ts"
import { isPeer, PEER_SETUP, readPeerVersions, type SubjectName } from "./subjects.ts"

/** A project that has one subject in the way its README says: Baton as a bundle, a peer by its entry in opencode.json. */
export const withSubject = <T>(
  binary: OpenCodeBinary,
  name: SubjectName,
  script: Script,
  use: (opened: BenchProject) => Promise<T>,
): Promise<T> => {
  const bundle = name === "baton" ? "project" : "none"
  if (!isPeer(name)) return withBenchProject(binary, script, { bundle }, use)
  const version = readPeerVersions()[name]
  const { environment = {} } = PEER_SETUP[name]
  const config = { plugin: [`${name}@${version}`] }
  return withBenchProject(binary, script, { bundle, config, environment }, (opened) => {
    linkPeer(opened.project, name, version)
    return use(opened)
  })
}

/** All of them at once, by name. */
export const withSubjects = <T>(
  binary: OpenCodeBinary,
  [name, ...others]: readonly SubjectName[],
  script: Script,
  use: (opened: ReadonlyMap<SubjectName, BenchProject>) => Promise<T>,
): Promise<T> =>
  name === undefined
    ? use(new Map())
    : withSubject(binary, name, script, (first) =>
        withSubjects(binary, others, script, (opened) => use(new Map([[name, first], ...opened]))),
      )
