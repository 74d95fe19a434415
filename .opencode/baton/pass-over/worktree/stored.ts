import { readFile } from "node:fs/promises"
import type { ZodType } from "zod"
import { isNotFound } from "../../host/log.ts"
import { loadZod, type Zod } from "../../host/schema.ts"

/** Git's modes: a file, an executable file, a symbolic link. */
const MODES = ["100644", "100755", "120000"] as const
export type Mode = (typeof MODES)[number]

/** One state of a file; its content is in the pass's `held` folder under its hash (SHA-256, hex). */
export type Side = { readonly mode: Mode; readonly hash: string; readonly size: number }

/** The original and the time of a copy. */
export type CopyRecord = {
  version: 1
  /** ISO 8601, UTC. */
  began_at: string
  /** Place of the child's tools. */
  directory: string
  /** Top folder of the original, which `apply` writes to. */
  target: string
  /** The bundle's own folder within it, which no pass carries. */
  own_folder: string
  /** Files that are not in the copy. */
  left_out: { path: string; reason: string }[]
}

export type ManifestEntry = {
  path: string
  mode: Mode
  /** Identities (see `identityOf`) of the copy and of its original. */
  copy: string
  source: string
  /** Place of its content: "index", a name in the `base` folder, or a link's own target. */
  base: "index" | { stored: string } | { link: string }
  /** Written so shortly before copying that its times cannot show a change. */
  is_racy: boolean
}

export type HeldFile = {
  path: string
  /** Of a renamed file. */
  previous_path: string | null
  base: Side | null
  next: Side | null
  by: "tool" | "shell"
  fate: "held" | "applied" | "rejected"
}

/** `left_out`: the child's files that could not be stored. */
export type HeldChanges = { version: 1; files: HeldFile[]; left_out: { path: string; reason: string }[] }

/** One write into the worktree: the content before and after, and the temporary name it is written under. */
export type JournalEntry = {
  path: string
  before: (Side & { permissions: number }) | null
  after: Side | null
  temporary: string
}

export type Journal = { version: 1; entries: JournalEntry[]; made_folders: string[] }

const modeSchema = (z: Zod) => z.enum(MODES)
const sideFields = (z: Zod) => ({ mode: modeSchema(z), hash: z.string(), size: z.number() })
const leftOutSchema = (z: Zod) => z.array(z.object({ path: z.string(), reason: z.string() }))

export const recordSchema = (z: Zod): ZodType<CopyRecord> =>
  z.object({
    version: z.literal(1),
    began_at: z.string(),
    directory: z.string(),
    target: z.string(),
    own_folder: z.string(),
    left_out: leftOutSchema(z),
  })

export const manifestSchema = (z: Zod): ZodType<ManifestEntry[]> =>
  z.array(
    z.object({
      path: z.string(),
      mode: modeSchema(z),
      copy: z.string(),
      source: z.string(),
      base: z.union([z.literal("index"), z.object({ stored: z.string() }), z.object({ link: z.string() })]),
      is_racy: z.boolean(),
    }),
  )

export const changesSchema = (z: Zod): ZodType<HeldChanges> => {
  const side = z.object(sideFields(z)).nullable()
  const file = z.object({
    path: z.string(),
    previous_path: z.string().nullable(),
    base: side,
    next: side,
    by: z.enum(["tool", "shell"]),
    fate: z.enum(["held", "applied", "rejected"]),
  })
  return z.object({ version: z.literal(1), files: z.array(file), left_out: leftOutSchema(z) })
}

export const journalSchema = (z: Zod): ZodType<Journal> =>
  z.object({
    version: z.literal(1),
    entries: z.array(
      z.object({
        path: z.string(),
        before: z.object({ ...sideFields(z), permissions: z.number() }).nullable(),
        after: z.object(sideFields(z)).nullable(),
        temporary: z.string(),
      }),
    ),
    made_folders: z.array(z.string()),
  })

/**
 * @returns undefined when there is no such file
 * @throws the errors of reading, and zod's error for a damaged file
 */
export const readStored = async <T>(path: string, schema: (z: Zod) => ZodType<T>): Promise<T | undefined> => {
  let text: string
  try {
    text = await readFile(path, "utf8")
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
  return schema(await loadZod()).parse(JSON.parse(text))
}
