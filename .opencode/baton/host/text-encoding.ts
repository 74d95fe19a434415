export type Decoded =
  | { readonly kind: "text"; readonly text: string; readonly encoding: "UTF-8" | "UTF-16" | "Latin-1" }
  | { readonly kind: "binary" }

const SAMPLE_BYTES = 4_096
const MAX_UNPRINTABLE_SHARE = 0.3

type Encoding = "utf-8" | "utf-16le" | "utf-16be" | "latin1"

const decode = (bytes: Uint8Array, encoding: Encoding, fatal = false): string =>
  // Bun's types name fewer encodings than the standard that both runtimes keep.
  new TextDecoder(encoding as "utf-8", { fatal }).decode(bytes)

const tryDecode = (bytes: Uint8Array): string | undefined => {
  try {
    return decode(bytes, "utf-8", true)
  } catch (error) {
    // What a fatal decoder throws for a malformed sequence.
    if (error instanceof TypeError) return undefined
    throw error
  }
}

/** The rule of OpenCode's Read tool: a null byte, or more than 30 % of the first 4,096 bytes not printable. */
const isBinary = (bytes: Uint8Array): boolean => {
  if (bytes.includes(0)) return true
  const sample = bytes.subarray(0, SAMPLE_BYTES)
  const unprintable = sample.filter((byte) => byte < 9 || (byte > 13 && byte < 32)).length
  return unprintable > sample.length * MAX_UNPRINTABLE_SHARE
}

/** A file's bytes as text, without a byte order mark. What is neither UTF-16 (by its mark) nor UTF-8 is Latin-1. */
export const decodeText = (bytes: Uint8Array): Decoded => {
  const isBigEndian = bytes[0] === 0xfe && bytes[1] === 0xff
  if (isBigEndian || (bytes[0] === 0xff && bytes[1] === 0xfe)) {
    const text = decode(bytes, isBigEndian ? "utf-16be" : "utf-16le")
    // The rule for bytes, by way of UTF-8; UTF-32 begins with the same mark and is full of null characters.
    if (isBinary(new TextEncoder().encode(text))) return { kind: "binary" }
    return { kind: "text", text, encoding: "UTF-16" }
  }
  if (isBinary(bytes)) return { kind: "binary" }
  const text = tryDecode(bytes)
  if (text !== undefined) return { kind: "text", text, encoding: "UTF-8" }
  return { kind: "text", text: decode(bytes, "latin1"), encoding: "Latin-1" }
}
