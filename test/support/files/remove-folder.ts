import { rm } from "node:fs/promises"

/**
 * Removes a folder into which a program that outlived its test may still write, such as a `git gc` that OpenCode 1.2.15 left
 * running: new files are removed too. `rmSync` repeats only its last step and fails again.
 *
 * @throws the file system's error, ENOTEMPTY if a program writes for longer than 20 attempts (about 20 s)
 */
export const removeFolder = (folder: string): Promise<void> =>
  rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
