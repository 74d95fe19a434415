import { mkdirSync, renameSync, writeFileSync } from "node:fs"
import { userInfo } from "node:os"
import { dirname } from "node:path"

/** One of OpenCode's views shows the folder with all that is above it; the columns behind it stay where they are. */
export const shortenFolder = (screen: string, directory: string, shown: string): string =>
  screen.replaceAll(directory, shown.padEnd(directory.length))

/**
 * Writes an SVG in one piece, and its folder where that is missing.
 *
 * @param home of the run that the picture is of
 * @throws when the picture would show where it was taken
 */
export const writePicture = (path: string, svg: string, home?: string): void => {
  const traces = [...(home ? [home] : []), "baton-e2e-", `/${userInfo().username}/`].filter((part) =>
    svg.includes(part),
  )
  if (traces.length > 0) throw new Error(`the picture shows this machine: ${traces.join(", ")}`)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(`${path}.tmp`, svg)
  renameSync(`${path}.tmp`, path)
}
