import { lstatSync, realpathSync } from "node:fs"
import { dirname } from "node:path"
import { isNotFound } from "../../host/log.ts"
import { isInside } from "./redirect.ts"

/** @returns the real path of what is there, or of the nearest folder that is; undefined where a link leads nowhere */
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
 * Whether writing to a path of the copy would write elsewhere, through a link: the copy has links as the worktree has them,
 * and an absolute one leads back into the user's own files.
 *
 * @throws the file system's own error, such as ELOOP
 */
export const leadsOut = (path: string, copy: string): boolean => {
  if (!isInside(copy, path)) return false
  const real = nearestRealPath(path)
  return real === undefined || !isInside(realpathSync(copy), real)
}
