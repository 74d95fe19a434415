import { sep } from "node:path"

/** Tells which of several loaded copies of the bundle serves a project's feature. */
type BundleClaim = {
  /** The folder of a copy that was loaded before this one. */
  readonly other: string | undefined
  /** Tells whether this copy serves. Asked at every hook, since a later copy may take precedence. */
  isActive(): boolean
  release(): void
}

type Holder = { bundleRoot: string; token: symbol }

const CLAIMS = Symbol.for("baton.bundle-claims")

const claims = (): Map<string, Holder> => {
  const shared: typeof globalThis & { [CLAIMS]?: Map<string, Holder> } = globalThis
  shared[CLAIMS] ??= new Map()
  return shared[CLAIMS]
}

const isInside = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}${sep}`)

/**
 * Claims a feature for this copy of the bundle: OpenCode loads a global and a project copy side by side, and both would
 * answer every hook. The claim is kept on globalThis, because two copies are two module instances, and by directory, because
 * one server serves several projects.
 *
 * The copy inside the project takes precedence; otherwise the first one loaded serves. When the same copy is loaded again
 * (OpenCode re-initialises a directory), the new instance takes over.
 */
export const claimBundle = (options: {
  feature: string
  directory: string
  projectRoot: string
  bundleRoot: string
}): BundleClaim => {
  const { feature, directory, projectRoot, bundleRoot } = options
  const key = `${feature}\n${directory}`
  const mine: Holder = { bundleRoot, token: Symbol(feature) }
  const current = claims().get(key)
  const outranks = isInside(bundleRoot, projectRoot)
  if (!current || current.bundleRoot === bundleRoot || outranks) claims().set(key, mine)
  return {
    other: current?.bundleRoot === bundleRoot ? undefined : current?.bundleRoot,
    isActive: () => claims().get(key)?.token === mine.token,
    release: () => {
      if (claims().get(key)?.token === mine.token) claims().delete(key)
    },
  }
}
