import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { dirname, join } from "node:path"
import { onTestFinished } from "vitest"
import { REPOSITORY } from "../opencode/opencode-binary.ts"

const folderOf = (name: string): string => join(REPOSITORY, "node_modules", name)

/** A registry's document about an installed package, with its one version. */
const describePackage = (name: string, url: string) => {
  const manifest = JSON.parse(readFileSync(join(folderOf(name), "package.json"), "utf8"))
  const { version } = manifest
  return {
    name,
    "dist-tags": { latest: version },
    versions: { [version]: { ...manifest, dist: { tarball: `${url}/tar/${encodeURIComponent(name)}` } } },
  }
}

const sendArchive = (name: string, response: ServerResponse): void => {
  const folder = folderOf(name)
  const tar = spawn("tar", ["-cf", "-", "-C", dirname(folder), folder.slice(dirname(folder).length + 1)])
  tar.on("error", (error) => response.destroy(error))
  tar.stdout.pipe(response)
}

/**
 * Starts an npm registry on loopback, until the test ends, with only the packages installed in this repository.
 *
 * @returns its URL, and the names of the packages that were fetched
 */
export const startPackageRegistry = async (): Promise<{ url: string; fetched: readonly string[] }> => {
  const fetched: string[] = []
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? "").slice(1)
    const archived = path.startsWith("tar/") ? path.slice("tar/".length) : undefined
    const name = archived ?? path
    if (request.method !== "GET" || !existsSync(join(folderOf(name), "package.json"))) {
      response.writeHead(404).end("{}")
    } else if (archived === undefined) {
      response.setHeader("content-type", "application/json")
      response.end(JSON.stringify(describePackage(name, url)))
    } else {
      fetched.push(name)
      sendArchive(name, response)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url, fetched }
}
