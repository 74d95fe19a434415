import { lstatSync, realpathSync } from "node:fs"
import { dirname } from "node:path"
import { isNotFound } from "../../host/log.ts"
import { isInside } from "../sandbox/paths.ts"

/** @returns the real path, or that of the nearest existing folder; undefined for a dangling link */
const nearestRealPath = (path: string): string | undefined => {
  try {
    return realpathSync(path)
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
  try {
    lstatSync(path)
    return undefined
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
  return nearestRealPath(dirname(path))
}

/**
 * Tells whether a write to a path of the copy would go elsewhere through a link: the copy has the worktree's links, and an
 * absolute one leads back to the user's files.
 *
 * @throws the file system's own error, such as ELOOP
 */
export const leadsOut = (path: string, copy: string): boolean => {
  if (!isInside(copy, path)) return false
  const real = nearestRealPath(path)
  return real === undefined || !isInside(realpathSync(copy), real)
}
