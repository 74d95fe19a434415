import { loadZod } from "../host/schema.ts"

/** A learning of the ledger, as `prog context --json` gives it. */
export type LedgerLearning = {
  readonly id: string
  readonly summary: string
  readonly detail: string
  readonly concepts: readonly string[]
  readonly files: readonly string[]
  /** RFC 3339. */
  readonly createdAt: string
  /** "active" or "stale" */
  readonly status: string
}

/**
 * Reads what `prog context -p PROJECT --summary --include-stale --json` printed (prog v0.17.0).
 *
 * @throws SyntaxError or zod's error when it is no such list
 */
export const parseLearningsJson = async (json: string): Promise<LedgerLearning[]> => {
  const z = await loadZod()
  const texts = z.array(z.string()).nullish()
  const schema = z.array(
    z.object({
      id: z.string(),
      summary: z.string(),
      detail: z.string().nullish(),
      concepts: texts,
      files: texts,
      created_at: z.string(),
      status: z.string(),
    }),
  )
  return schema.parse(JSON.parse(json)).map(({ id, summary, detail, concepts, files, created_at, status }) => ({
    id,
    summary,
    detail: detail ?? "",
    concepts: concepts ?? [],
    files: files ?? [],
    createdAt: created_at,
    status,
  }))
}
