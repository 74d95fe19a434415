import { randomBytes } from "node:crypto"
import { constants } from "node:fs"
import { copyFile, mkdir, readFile, readlink, rename, rm, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { TEMPORARY } from "../../host/state.ts"
import type { Candidate } from "./differences.ts"
import { hashFile, hashText, identityOf, modeOf, statIfThere } from "./disk.ts"
import type { Git } from "./git.ts"
import type { PassFolder } from "./pass-folder.ts"
import { checkOutOf } from "./repository.ts"
import type { ManifestEntry, Side } from "./stored.ts"

/**
 * Stores the content of a file or link under its hash. The hash is taken of the stored copy, so that a file being written
 * meanwhile is stored in some consistent state under the right name.
 *
 * @returns its mode, hash and size; undefined for anything else, or a missing path
 * @throws the file system's own error
 */
export const storeContent = async (path: string, held: string): Promise<Side | undefined> => {
  const found = statIfThere(path)
  const mode = found && modeOf(found)
  if (mode === undefined) return undefined
  const temporary = join(held, `${randomBytes(8).toString("hex")}${TEMPORARY}`)
  if (mode === "120000") await writeFile(temporary, await readlink(path))
  else await copyFile(path, temporary, constants.COPYFILE_FICLONE)
  const hash = await hashFile(temporary)
  const { size } = await stat(temporary)
  await rename(temporary, join(held, hash))
  return { mode, hash, size }
}

/** Finds the contents that the child began with, for the files that it changed. */
type BaseContents = { store(entry: ManifestEntry): Promise<Side> }

/**
 * Files in the user's index are stored nowhere else: while the original is unchanged, it is the content that the child began
 * with; otherwise git checks it out of the index.
 */
export const openBaseContents = async ({
  git,
  target,
  folder,
  candidates,
}: {
  git: Git
  target: string
  folder: PassFolder
  candidates: readonly Candidate[]
}): Promise<BaseContents> => {
  const checkedOut = join(folder.root, "checked-out")
  const touched: string[] = []
  const untouched = new Set<string>()
  for (const { began } of candidates) {
    if (began?.base !== "index") continue
    const source = statIfThere(join(target, began.path))
    if (source !== undefined && identityOf(source) === began.source) untouched.add(began.path)
    else touched.push(began.path)
  }
  await rm(checkedOut, { recursive: true, force: true })
  await mkdir(checkedOut, { recursive: true })
  await checkOutOf(git, { top: target, index: folder.index, folder: checkedOut }, touched)

  const placeOf = ({ path, base }: ManifestEntry): string => {
    if (typeof base === "object" && "stored" in base) return join(folder.base, base.stored)
    return untouched.has(path) ? join(target, path) : join(checkedOut, path)
  }
  return {
    store: async (entry) => {
      const { base, mode } = entry
      if (typeof base === "object" && "link" in base) {
        const hash = hashText(base.link)
        await writeFile(join(folder.held, hash), base.link)
        return { mode, hash, size: Buffer.byteLength(base.link) }
      }
      const side = await storeContent(placeOf(entry), folder.held)
      if (side === undefined) throw new Error(`what the pass began with cannot be read: ${entry.path}`)
      return { ...side, mode }
    },
  }
}

/** @throws when the content is missing: it was stored before everything that refers to it */
export const readContent = (held: string, side: Side): Promise<Buffer> => readFile(join(held, side.hash))
