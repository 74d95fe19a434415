import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import { onTestFinished } from "vitest"

/** A package that a registry has, in one version. */
export type Published = {
  readonly name: string
  readonly version: string
  readonly tarball: string
  readonly manifest?: object
}

/** A package registry that has these alone, until the test ends. @returns its address */
export const serveRegistry = async (packages: readonly Published[]): Promise<string> => {
  const archives = new Map(packages.map(({ name, tarball }) => [name, readFileSync(tarball)]))
  const server = createServer(({ url = "", headers }, response) => {
    const path = decodeURIComponent(url.slice(1))
    const archive = archives.get(path.replace(/\.tgz$/, ""))
    const found = packages.find(({ name }) => name === path)
    if (path.endsWith(".tgz") && archive) return response.end(archive)
    if (!found || !archive) return response.writeHead(404).end("{}")
    const { name, version, manifest } = found
    const integrity = `sha512-${createHash("sha512").update(archive).digest("base64")}`
    const tarball = `http://${headers.host}/${name}.tgz`
    const versions = { [version]: { ...manifest, name, version, dist: { tarball, integrity } } }
    return response.end(JSON.stringify({ name, "dist-tags": { latest: version }, versions }))
  })
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  onTestFinished(() => void server.close())
  const address = server.address()
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/`
}
