import { isAbsolute } from "node:path"
import type { Immutable, Parsed, Zod } from "../../host/schema.ts"

// A changed file of a pass, as it is stored, and the paths that no pass carries.

/** Git's modes: a file, an executable file, a symbolic link. */
export const MODES = ["100644", "100755", "120000"] as const
export type Mode = (typeof MODES)[number]

/** Characters that some file systems ignore in a name, and the names that they take for `.git`, as git refuses them. */
const IGNORED_CHARACTERS = /[\u200C-\u200F\u202A-\u202E\u206A-\u206F\uFEFF]/g
const REPOSITORY_NAME = /^(?:\.git|git~1)[ .]*(?:[:\\].*)?$/i

/** Tells whether a path leads into a repository, in any spelling of `.git`. */
export const isInRepository = (path: string): boolean =>
  path.split("/").some((part) => REPOSITORY_NAME.test(part.replaceAll(IGNORED_CHARACTERS, "")))

/** Tells which paths no pass carries: repositories, and the bundle's own state, also as a file system without case finds it. */
export const isExcluded = (path: string): boolean =>
  isInRepository(path) || `/${path.toLowerCase()}`.includes("/.opencode/state/")

const isOrdinary = (path: string): boolean =>
  path !== "" && !isAbsolute(path) && path.split("/").every((part) => !["", ".", ".."].includes(part))
/** A stored path is acted on: it must lead neither out of the project nor into its repository. */
export const pathSchema = (z: Zod) => z.string().refine((path) => isOrdinary(path) && !isExcluded(path))

/** One state of a file; `oid` is the id of its content in git, `size` in bytes. */
export const stateFields = (z: Zod) => ({
  mode: z.enum(MODES),
  oid: z.string().regex(/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/),
  size: z.number(),
})

/** A file before and after, relative to the top folder; null for a missing side. */
export const changeSchema = (z: Zod) => {
  const file = z.object(stateFields(z)).nullable()
  return z.object({
    path: pathSchema(z),
    /** Of a renamed file. */
    previous_path: pathSchema(z).nullable(),
    base: file,
    next: file,
    is_binary: z.boolean(),
    /** Of a symbolic link. */
    link_target: z.string().nullable(),
    by: z.enum(["tool", "shell"]),
  })
}

export type Change = Immutable<Parsed<typeof changeSchema>>
export type FileState = NonNullable<Change["base"]>
