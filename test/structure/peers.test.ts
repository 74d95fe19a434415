import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { PEER_NAMES, PEERS_MANIFEST, readPeerVersions } from "../../scripts/benchmarks/subjects.ts"
import { promised } from "../requirements.ts"

type Lock = { packages: Record<string, { version: string; integrity?: string; resolved?: string }> }

test(
  promised("peers.C1", "the peers' packages are locked whole, by content and not by address, in exact versions"),
  () => {
    const text = readFileSync(join(PEERS_MANIFEST, "..", "package-lock.json"), "utf8")
    const { packages } = JSON.parse(text) as Lock
    const { "": own, ...locked } = packages
    expect(own).toBeDefined()
    expect(Object.keys(locked).length).toBeGreaterThan(PEER_NAMES.length)
    for (const [name, { integrity, resolved }] of Object.entries(locked)) {
      expect(integrity, name).toMatch(/^sha512-/)
      expect(resolved, name).toBeUndefined()
    }
    const versions = readPeerVersions()
    for (const name of PEER_NAMES) expect(packages[`node_modules/${name}`]?.version, name).toBe(versions[name])
    expect(text).not.toMatch(/https?:\/\/[^"]*(?:registry|npmjs|npm\.)/)
  },
)
