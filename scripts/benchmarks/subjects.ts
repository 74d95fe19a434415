import { readFileSync } from "node:fs"
import { join } from "node:path"

/** The exact versions of the peers, and what npm installs them by. */
export const PEERS_MANIFEST = join(import.meta.dirname, "peers", "package.json")

export const PEER_NAMES = ["oh-my-opencode", "opencode-beads", "@tarquinen/opencode-dcp"] as const
export type PeerName = (typeof PEER_NAMES)[number]

/** What is measured side by side; "plain" is OpenCode without any plugin. */
export const SUBJECT_NAMES = ["plain", "baton", ...PEER_NAMES] as const
export type SubjectName = (typeof SUBJECT_NAMES)[number]

/** Short names for tables and pictures. */
export const SUBJECT_LABELS: Record<SubjectName, string> = {
  plain: "plain OpenCode",
  baton: "Baton",
  "oh-my-opencode": "oh-my-opencode",
  "opencode-beads": "opencode-beads",
  "@tarquinen/opencode-dcp": "opencode-dcp",
}

export const isPeer = (name: SubjectName): name is PeerName => (PEER_NAMES as readonly string[]).includes(name)

/** What a peer's README says to set beside its entry in opencode.json, and the program it needs, which is not set up here. */
export const PEER_SETUP: Record<PeerName, { environment?: Record<string, string>; program?: string }> = {
  // Its telemetry would tell its makers of every run here.
  "oh-my-opencode": { environment: { OMO_SEND_ANONYMOUS_TELEMETRY: "0" } },
  "opencode-beads": { program: "bd" },
  "@tarquinen/opencode-dcp": {},
}

/** @throws when the manifest does not name an exact version */
export const readPeerVersions = (): Record<PeerName, string> => {
  const { dependencies } = JSON.parse(readFileSync(PEERS_MANIFEST, "utf8")) as { dependencies: Record<string, string> }
  const versions = PEER_NAMES.map((name) => {
    const version = dependencies[name]
    if (version === undefined || !/^\d+\.\d+\.\d+$/.test(version))
      throw new Error(`expected an exact version of ${name} in ${PEERS_MANIFEST}, received ${version}`)
    return [name, version]
  })
  return Object.fromEntries(versions) as Record<PeerName, string>
}
