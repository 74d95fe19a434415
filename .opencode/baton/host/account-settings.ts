import { join } from "node:path"
import { isNotFound } from "./log.ts"
import { accountFolder } from "./project.ts"
import { loadZod, type Parsed, type Zod } from "./schema.ts"
import { readOwnTextSync } from "./untrusted.ts"

/** The account's own settings: outside of all projects, none of which can change them. */
const accountSettingsSchema = (z: Zod) =>
  z.strictObject({
    /** Program and arguments, run for each request that waits for a person. */
    onWaiting: z.array(z.string().min(1)).min(1).optional(),
  })

export const accountSettingsPath = (): string => join(accountFolder(), "baton.json")

/**
 * Reads the account's settings; none where there is no file.
 *
 * @throws RefusedFile, SyntaxError, the file system's or zod's own error
 */
export const readAccountSettings = async (): Promise<Parsed<typeof accountSettingsSchema>> => {
  let content: unknown
  try {
    content = JSON.parse(readOwnTextSync(accountSettingsPath()))
  } catch (error) {
    if (isNotFound(error)) return {}
    throw error
  }
  return accountSettingsSchema(await loadZod()).parse(content)
}
