/** A line of at most this many bytes is read; a longer one is skipped as a whole. */
const MAX_LINE_BYTES = 1024 * 1024

export type LineReader = {
  /** @returns the lines that this chunk ends, without their line ends; undefined stands for one that cannot be read */
  push(chunk: Uint8Array): (string | undefined)[]
  /** What stands behind the last line end. */
  end(): (string | undefined)[]
}

const LINE_END = 0x0a

/** Splits a stream of bytes into UTF-8 lines, in bounded memory. An oversized line and invalid UTF-8 give undefined. */
export const createLineReader = (maxBytes = MAX_LINE_BYTES): LineReader => {
  const decoder = new TextDecoder("utf-8", { fatal: true })
  let chunks: Uint8Array[] = []
  let size = 0
  let isOversized = false

  const decode = (bytes: Uint8Array): string | undefined => {
    try {
      return decoder.decode(bytes)
    } catch (error) {
      if (error instanceof TypeError) return undefined
      throw error
    }
  }

  const finish = (): string | undefined => {
    const line = isOversized ? undefined : decode(Buffer.concat(chunks))
    chunks = []
    size = 0
    isOversized = false
    return line
  }

  const keep = (piece: Uint8Array): void => {
    size += piece.length
    isOversized ||= size > maxBytes
    if (isOversized) chunks = []
    else if (piece.length > 0) chunks.push(piece)
  }

  return {
    push: (chunk) => {
      const lines: (string | undefined)[] = []
      let start = 0
      for (let at = chunk.indexOf(LINE_END); at >= 0; at = chunk.indexOf(LINE_END, start)) {
        keep(chunk.subarray(start, at))
        lines.push(finish())
        start = at + 1
      }
      // A chunk may be reused by whoever reads.
      keep(chunk.slice(start))
      return lines.filter((line) => line === undefined || line.trim() !== "")
    },
    end: () => (size > 0 ? [finish()] : []),
  }
}
