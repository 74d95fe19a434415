import { rm } from "node:fs/promises"

/**
 * Removes a folder into which a program that outlived its test may still write for a moment, as a `git gc` that OpenCode 1.2.15
 * left behind: what came meanwhile is removed as well. `rmSync` only repeats the last step and meets it again.
 *
 * @throws the file system's own error, ENOTEMPTY when something is written for longer than 20 attempts (about 20 s)
 */
export const removeFolder = (folder: string): Promise<void> =>
  rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
