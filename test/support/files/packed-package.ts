import { spawnSync } from "node:child_process"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll } from "vitest"
import { REPOSITORY } from "../opencode/opencode-binary.ts"
import type { TestProject } from "../opencode/test-project.ts"

const { name, version }: { name: string; version: string } = JSON.parse(
  readFileSync(join(REPOSITORY, "package.json"), "utf8"),
)

/** The package for `plugin` in opencode.json. */
export const PACKAGE_ENTRY = `${name}@${version}`

const runTool = (program: string, args: readonly string[]): string => {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd: REPOSITORY, encoding: "utf8" })
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} exited with ${status}: ${stderr}`, { cause: error })
  return stdout
}

const ZOD = join(REPOSITORY, "node_modules", "zod")

let packed: string | undefined
let packedZod: string | undefined

/** Packs the package's dependency, for a machine without a registry. @returns the tarball, in the folder of packPackage's */
export const packZod = (): string => {
  const folder = dirname(packPackage())
  packedZod ??= join(folder, runTool("npm", ["pack", "--silent", "--pack-destination", folder, ZOD]).trim())
  return packedZod
}

/** Packs the package once for all tests of a file. @returns the tarball of `npm pack`, which is removed at the end */
export const packPackage = (): string => {
  if (packed !== undefined) return packed
  const folder = mkdtempSync(join(tmpdir(), "baton-pack-"))
  const name = runTool("npm", ["pack", "--silent", "--pack-destination", folder]).trim()
  packed = join(folder, name)
  return packed
}

/** Called once at the top of a test file that packs. */
export const removePackage = (): void => {
  afterAll(() => {
    if (packed !== undefined) rmSync(dirname(packed), { recursive: true })
    packed = undefined
    packedZod = undefined
  })
}

/** Puts the package's files into a folder, and its dependency beside it, as npm would. */
export const unpackPackage = (folder: string): void => {
  mkdirSync(dirname(folder), { recursive: true })
  const around = mkdtempSync(`${folder}-`)
  runTool("tar", ["-xzf", packPackage(), "-C", around])
  renameSync(join(around, "package"), folder)
  rmSync(around, { recursive: true })
  const beside = join(dirname(folder), "zod")
  if (!existsSync(beside)) symlinkSync(ZOD, beside)
}

/** Version of 1.2.15's package cache, which deletes the packages of another version. */
const CACHE_VERSION = "21"

/** Puts the package where OpenCode has a plugin that it has fetched from npm; see docs/opencode-notes.md. */
export const cachePackage = ({ environment }: Pick<TestProject, "environment">): void => {
  const cache = join(environment.XDG_CACHE_HOME ?? "", "opencode")
  unpackPackage(join(cache, "packages", PACKAGE_ENTRY, "node_modules", name))
  unpackPackage(join(cache, "node_modules", name))
  writeFileSync(join(cache, "package.json"), JSON.stringify({ dependencies: { [name]: version } }))
  writeFileSync(join(cache, "version"), CACHE_VERSION)
}
