import { createHash } from "node:crypto"

/**
 * Bytes one text may have on its way to the ledger. Linux carries 131,071 in one argument, and the process runner uses
 * one of them; Windows carries 32,767 characters in a whole command line.
 */
export const textLimit = (platform: NodeJS.Platform): number => (platform === "win32" ? 30_000 : 130_000)

/** Nothing can be cut so far that the text fits; waiting does not help. */
export class NoRoomError extends Error {
  override readonly name = "NoRoomError"
}

/** The text as any program receives it: no NUL, and U+FFFD for half a surrogate pair. */
export const toSendable = (text: string): string => Buffer.from(text.replaceAll("\0", "\u2400")).toString()

/** The first bytes of a text that are whole characters. */
const takeBytes = (text: string, bytes: number): string => {
  const buffer = Buffer.from(text)
  let end = Math.max(0, bytes)
  // 10xxxxxx is inside a character.
  while (end > 0 && ((buffer[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return buffer.subarray(0, end).toString()
}

export type FittedText =
  | { readonly kind: "whole"; readonly text: string }
  | { readonly kind: "cut"; readonly text: string; readonly file: string; readonly full: string }
  /** Not even the pointer fits. */
  | { readonly kind: "no-room" }

/**
 * Cuts a text that is too long and ends it with a pointer to the full one. Pure; the same text and limit give the same
 * result and the same file name.
 *
 * @param maxBytes of UTF-8, pointer included
 */
export const fitText = (taskID: string, text: string, maxBytes: number): FittedText => {
  const full = toSendable(text)
  const size = Buffer.byteLength(full)
  if (size <= maxBytes) return { kind: "whole", text: full }
  const digest = createHash("sha256").update(full).digest("hex").slice(0, 12)
  const file = `${taskID.toLowerCase().replaceAll(/[^a-z0-9-]/g, "_")}-${digest}.md`
  const pointer = `[cut: ${size} bytes in all; the full text is in .opencode/state/handoffs/${file}]`
  const room = maxBytes - Buffer.byteLength(pointer) - 2
  if (room < 0) return { kind: "no-room" }
  return { kind: "cut", text: `${takeBytes(full, room)}\n\n${pointer}`, file, full }
}
