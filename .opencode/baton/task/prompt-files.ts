import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs"
import { type FileHandle, open, stat } from "node:fs/promises"
import { join } from "node:path"

export type PromptName = "handoff" | "handoff-command" | "worker" | "planner"

export type PromptFile =
  | { readonly kind: "text"; readonly text: string }
  /** `reason` is a clause for a person: what was found and what was expected. */
  | { readonly kind: "unusable"; readonly path: string; readonly reason: string }

export type PromptFiles = {
  /** Reads the file anew at each call, so that an edit counts at the next compaction. Never rejects. */
  read(name: PromptName): Promise<PromptFile>
  /** The same without waiting for anything else, for a caller that OpenCode asks synchronously. */
  readNow(name: PromptName): PromptFile
}

/** More than this is not a prompt but an accident. */
export const PROMPT_LIMIT_BYTES = 65_536

const PROMPTS_FOLDER = "prompts"

/** Without O_NONBLOCK, opening a named pipe waits for a writer. Windows has neither. */
const READ_WITHOUT_WAITING = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

class UnusablePrompt extends Error {
  override readonly name = "UnusablePrompt"
}

const requireRegularFile = (found: { isFile(): boolean; isDirectory(): boolean }): void => {
  if (found.isDirectory()) throw new UnusablePrompt("it is a folder, not a file")
  if (!found.isFile()) throw new UnusablePrompt("it is not a regular file")
}

const withinLimit = (buffer: Uint8Array, length: number): Uint8Array => {
  if (length > PROMPT_LIMIT_BYTES) throw new UnusablePrompt(`it is larger than ${PROMPT_LIMIT_BYTES} bytes`)
  return buffer.subarray(0, length)
}

/** Reads one byte more than the limit at most, whatever size the file claims or grows to. */
const readBounded = async (file: FileHandle): Promise<Uint8Array> => {
  const buffer = new Uint8Array(PROMPT_LIMIT_BYTES + 1)
  let length = 0
  while (length < buffer.length) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return withinLimit(buffer, length)
}

const readRegularFile = async (path: string): Promise<Uint8Array> => {
  requireRegularFile(await stat(path))
  const file = await open(path, READ_WITHOUT_WAITING)
  try {
    requireRegularFile(await file.stat())
    return await readBounded(file)
  } finally {
    await file.close()
  }
}

const readRegularFileNow = (path: string): Uint8Array => {
  requireRegularFile(statSync(path))
  const file = openSync(path, READ_WITHOUT_WAITING)
  try {
    requireRegularFile(fstatSync(file))
    const buffer = new Uint8Array(PROMPT_LIMIT_BYTES + 1)
    let length = 0
    for (;;) {
      const bytesRead = readSync(file, buffer, length, buffer.length - length, length)
      if (bytesRead === 0) return withinLimit(buffer, length)
      length += bytesRead
    }
  } finally {
    closeSync(file)
  }
}

/** The decoder drops a byte order mark; LF is the one line end that leaves. */
const decodePrompt = (bytes: Uint8Array): string => {
  let text: string
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new UnusablePrompt("it is not UTF-8 text", { cause })
  }
  if (text.includes("\0")) throw new UnusablePrompt("it holds NUL bytes, so it is not text")
  if (text.trim() === "") throw new UnusablePrompt("it is empty")
  return text.replace(/\r\n?/g, "\n")
}

const describeReason = (error: unknown): string => {
  if (error instanceof UnusablePrompt) return error.message
  const code = error instanceof Error && "code" in error ? String(error.code) : ""
  if (code === "ENOENT") return "it does not exist"
  return `it cannot be read: ${code || String(error)}`
}

/**
 * The prompts a user may edit, in the folder `prompts` of a project.
 *
 * A file is read up to `PROMPT_LIMIT_BYTES`, a named pipe or device is refused without being read, and a symbolic
 * link is followed: sharing prompts between projects is the user's own choice. A deadline is the caller's.
 *
 * @param root absolute path of the folder that holds `.opencode` and `prompts`
 */
export const createPromptFiles = ({ root }: { root: string }): PromptFiles => {
  const pathOf = (name: PromptName) => join(root, PROMPTS_FOLDER, `${name}.md`)
  return {
    read: async (name) => {
      const path = pathOf(name)
      try {
        return { kind: "text", text: decodePrompt(await readRegularFile(path)) }
      } catch (error) {
        return { kind: "unusable", path, reason: describeReason(error) }
      }
    },
    readNow: (name) => {
      const path = pathOf(name)
      try {
        return { kind: "text", text: decodePrompt(readRegularFileNow(path)) }
      } catch (error) {
        return { kind: "unusable", path, reason: describeReason(error) }
      }
    },
  }
}
