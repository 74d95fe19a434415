/** CRC-32 of the POSIX `cksum` utility: polynomial 0x04C11DB7, most significant bit first, the length appended. */
const POLYNOMIAL = 0x04c11db7

const TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index << 24
  for (let bit = 0; bit < 8; bit += 1) value = value & 0x80000000 ? (value << 1) ^ POLYNOMIAL : value << 1
  return value >>> 0
})

const step = (crc: number, byte: number): number => ((crc << 8) ^ (TABLE[(crc >>> 24) ^ byte] ?? 0)) >>> 0

/** What `cksum < file` prints, as the manifest of scripts/install keeps it: the checksum and the size in bytes. */
export const posixChecksum = (bytes: Uint8Array): { readonly crc: number; readonly size: number } => {
  let crc = 0
  for (const byte of bytes) crc = step(crc, byte)
  for (let rest = bytes.length; rest > 0; rest = Math.floor(rest / 256)) crc = step(crc, rest % 256)
  return { crc: ~crc >>> 0, size: bytes.length }
}
