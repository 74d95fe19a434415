import { constants } from "node:fs"
import { open, realpath, stat } from "node:fs/promises"
import { extname, relative, resolve, sep } from "node:path"
import { errorCode, isNotFound } from "./log.ts"
import { isInside, readUpTo } from "./untrusted.ts"

/** Matches `*.env` and `*.env.*`: not `env.ts`, but also a folder `.env.d`. */
const ENV_FILE = /\.env(?:\.|$)/i
/** Examples may be read, as in OpenCode's own read permission. */
const ENV_EXAMPLE = /\.(?:example|sample|template|dist)$/i
const KEY_FILES: readonly RegExp[] = [
  /\.(?:pem|key|p8|p12|pfx|jks|keystore|kdbx|ppk)$/,
  // Also a copy, such as id_rsa.bak; not the public part.
  /^id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?:\.(?!pub$).*)?$/,
  /(?:^|[-_.])service[-_]?account(?:[-_]key)?\.json$/,
  /\.tfstate(?:\.|$)/,
  /\.(?:kdb|ovpn|gpg|secret|secrets|auto\.tfvars)$/,
  /^(?:client_secret|application_default_credentials|credentials?|secrets?)(?:[-_.].*)?\.(?:json|ya?ml|toml|ini|txt|env|xml)$/,
  /firebase-adminsdk.*\.json$/,
  /^(?:\.?vault[-_]pass(?:word)?|\.ansible[-_]vault)/,
]
const CREDENTIAL_FILES: ReadonlySet<string> = new Set([
  ".netrc",
  "_netrc",
  ".npmrc",
  ".pypirc",
  ".git-credentials",
  ".pgpass",
  ".htpasswd",
  ".envrc",
  ".vault-token",
  ".my.cnf",
  ".mylogin.cnf",
  ".pg_service.conf",
  ".s3cfg",
  ".boto",
  ".dockercfg",
  ".terraformrc",
  "terraform.rc",
  "terraform.tfvars",
  "local.settings.json",
  "rclone.conf",
  "wp-config.php",
  "kubeconfig",
  "auth.json",
])
const SECRET_FOLDERS: ReadonlySet<string> = new Set([".git", ".ssh", ".gnupg", ".aws", ".azure", ".password-store"])
/** Files whose name alone says nothing. */
const CREDENTIAL_PATHS =
  /(?:^|\/)(?:\.docker\/config\.json|\.kube\/config|gh\/hosts\.yml|\.cargo\/credentials(?:\.toml)?|\.gem\/credentials|\.config\/gcloud\/.*|\.m2\/settings\.xml)$/

/**
 * Tells by its path whether a file may hold secrets: files that OpenCode's own read permission guards (`*.env`, `*.env.*`
 * except examples), private keys, credential files of programs, and everything in `.git` and key folders.
 *
 * @param path with `/` or `\` between its segments
 */
export const isSecretPath = (path: string): boolean => {
  const segments = path.toLowerCase().split(/[\\/]/)
  const name = segments.pop() ?? ""
  if (segments.some((folder) => SECRET_FOLDERS.has(folder))) return true
  if (ENV_FILE.test(path)) return !ENV_EXAMPLE.test(name)
  if (KEY_FILES.some((pattern) => pattern.test(name)) || CREDENTIAL_FILES.has(name)) return true
  return CREDENTIAL_PATHS.test([...segments, name].join("/"))
}

type Decoded =
  | { readonly kind: "text"; readonly text: string; readonly encoding: "UTF-8" | "UTF-16" | "Latin-1" }
  | { readonly kind: "binary" }

const SAMPLE_BYTES = 4_096
const MAX_UNPRINTABLE_SHARE = 0.3

type Encoding = "utf-8" | "utf-16le" | "utf-16be" | "latin1"

const decode = (bytes: Uint8Array, encoding: Encoding, fatal = false): string =>
  // Bun's types list fewer encodings than the standard, which both runtimes support.
  new TextDecoder(encoding as "utf-8", { fatal }).decode(bytes)

const tryDecode = (bytes: Uint8Array): string | undefined => {
  try {
    return decode(bytes, "utf-8", true)
  } catch (error) {
    // A fatal decoder throws a TypeError for a malformed sequence.
    if (error instanceof TypeError) return undefined
    throw error
  }
}

/** The rule of OpenCode's Read tool: a null byte, or more than 30 % unprintable bytes in the first 4,096. */
const isBinary = (bytes: Uint8Array): boolean => {
  if (bytes.includes(0)) return true
  const sample = bytes.subarray(0, SAMPLE_BYTES)
  const unprintable = sample.filter((byte) => byte < 9 || (byte > 13 && byte < 32)).length
  return unprintable > sample.length * MAX_UNPRINTABLE_SHARE
}

/** Decodes a file without its byte order mark. Bytes that are neither UTF-16 (by the mark) nor UTF-8 are read as Latin-1. */
export const decodeText = (bytes: Uint8Array): Decoded => {
  const isBigEndian = bytes[0] === 0xfe && bytes[1] === 0xff
  if (isBigEndian || (bytes[0] === 0xff && bytes[1] === 0xfe)) {
    const text = decode(bytes, isBigEndian ? "utf-16be" : "utf-16le")
    // Checked as UTF-8 bytes. UTF-32 starts with the same mark and is full of null characters.
    if (isBinary(new TextEncoder().encode(text))) return { kind: "binary" }
    return { kind: "text", text, encoding: "UTF-16" }
  }
  if (isBinary(bytes)) return { kind: "binary" }
  const text = tryDecode(bytes)
  if (text !== undefined) return { kind: "text", text, encoding: "UTF-8" }
  return { kind: "text", text: decode(bytes, "latin1"), encoding: "Latin-1" }
}

export type ProjectFile = {
  readonly kind: "file"
  /** Relative to the base, with `/` between segments. */
  readonly path: string
  readonly realPath: string
  readonly text: string
  readonly encoding: "UTF-8" | "UTF-16" | "Latin-1"
}

type UnreadableFile = {
  readonly kind: "missing" | "refused"
  /** The path as requested. */
  readonly path: string
  readonly reason: string
  readonly isFolder?: true
}

export const MAX_FILE_BYTES = 2 * 1024 * 1024

const BINARY_EXTENSIONS: ReadonlySet<string> = new Set(
  [
    ["zip", "tar", "gz", "tgz", "bz2", "xz", "7z", "rar", "zst", "jar", "war", "exe", "dll", "so", "dylib", "class"],
    ["bin", "dat", "obj", "o", "a", "lib", "wasm", "pyc", "pyo", "node", "doc", "docx", "xls", "xlsx", "ppt", "pptx"],
    ["odt", "ods", "odp", "pdf", "png", "jpg", "jpeg", "gif", "webp", "ico", "bmp", "tiff", "mp3", "mp4", "mov", "avi"],
    ["webm", "ogg", "wav", "flac", "woff", "woff2", "ttf", "otf", "eot", "sqlite", "db"],
  ]
    .flat()
    .map((name) => `.${name}`),
)

const REASONS: Readonly<Record<string, string>> = {
  ELOOP: "its links lead in a circle",
  EACCES: "it may not be read",
  EPERM: "it may not be read",
  ENAMETOOLONG: "its name is too long",
}

const refusal = (path: string, error: unknown): UnreadableFile => {
  const code = errorCode(error) ?? ""
  if (isNotFound(error)) return { kind: "missing", path, reason: "there is no such file" }
  return { kind: "refused", path, reason: REASONS[code] ?? `it cannot be read (${code || String(error)})` }
}

/**
 * Reads a text file of the project. Refuses folders, devices, named pipes, files outside the root (by `..` or a link),
 * secrets, files over 2 MB and binary files.
 *
 * @param root real path of the folder that files must be in
 * @param base real path of the folder that relative paths start from
 * @param path as a model or a user wrote it
 */
export const readProjectFile = async (
  { root, base }: { root: string; base: string },
  path: string,
): Promise<ProjectFile | UnreadableFile> => {
  const refused = (reason: string): UnreadableFile => ({ kind: "refused", path, reason })
  if (path.includes("\0")) return refused("its name has a null byte")
  try {
    const named = resolve(base, path)
    const real = await realpath(named)
    if (real !== root && !isInside(root, real)) return refused("it lies outside the project")
    const shown = relative(base, real).split(sep).join("/")
    if ([named, real].some((each) => isSecretPath(relative(root, each)))) return refused("it may hold secrets")
    // Checked before opening, since opening a device or a pipe may already have an effect.
    const before = await stat(real)
    if (before.isDirectory()) return { ...refused("it is a folder"), isFolder: true }
    if (!before.isFile()) return refused("it is no regular file")
    if (before.size > MAX_FILE_BYTES) return refused(`it is larger than 2 MB (${before.size} bytes)`)
    if (BINARY_EXTENSIONS.has(extname(real).toLowerCase())) return refused("it is binary")
    const file = await open(real, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0))
    try {
      const opened = await file.stat()
      if (!opened.isFile() || opened.ino !== before.ino || opened.dev !== before.dev)
        return refused("it was replaced while it was opened")
      const bytes = readUpTo(file.fd, opened.size, MAX_FILE_BYTES)
      if (bytes.length > MAX_FILE_BYTES) return refused("it is larger than 2 MB")
      const decoded = decodeText(bytes)
      if (decoded.kind === "binary") return refused("it is binary")
      return { kind: "file", path: shown, realPath: real, text: decoded.text, encoding: decoded.encoding }
    } finally {
      await file.close()
    }
  } catch (error) {
    return refusal(path, error)
  }
}
