/** `*.env` and `*.env.*`: not `env.ts`, but a folder `.env.d` too. */
const ENV_FILE = /\.env(?:\.|$)/i
/** Examples are meant to be read, as OpenCode's own read permission has it. */
const ENV_EXAMPLE = /\.(?:example|sample|template|dist)$/i
const KEY_FILE = /\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk)$|^id_(?:rsa|dsa|ecdsa|ed25519)$/i
const CREDENTIAL_FILES: ReadonlySet<string> = new Set([
  ".netrc",
  "_netrc",
  ".npmrc",
  ".pypirc",
  ".git-credentials",
  ".pgpass",
  ".htpasswd",
  ".envrc",
])
const SECRET_FOLDERS: ReadonlySet<string> = new Set([".git", ".ssh", ".gnupg", ".aws"])

/**
 * Whether a file by its name holds secrets: what OpenCode's own read permission guards (`*.env`, `*.env.*` but the
 * examples), private keys, programs' credential files, and everything in `.git` and folders for keys.
 *
 * @param path with `/` or `\` between its segments
 */
export const isSecretPath = (path: string): boolean => {
  const segments = path.toLowerCase().split(/[\\/]/)
  const name = segments.pop() ?? ""
  if (segments.some((folder) => SECRET_FOLDERS.has(folder))) return true
  if (ENV_FILE.test(path)) return !ENV_EXAMPLE.test(name)
  return KEY_FILE.test(name) || CREDENTIAL_FILES.has(name)
}
