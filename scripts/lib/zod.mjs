// @ts-check
/** Part of scripts/install: the parts of zod that Baton needs to check stored data. They come along, since OpenCode 2 installs no packages. */
import { readdirSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { isFile } from "./files.mjs"

const PLACE = ".opencode/baton/zod"
const FOLDERS = ["classic", "core"]
/** The texts of its messages in English; the other languages stay out. */
const LANGUAGE = "v4/locales/en.js"
const LANGUAGES = 'export { default as en } from "./en.js"\n'

/** @param {string} path */
export const isOfZod = (path) => path.startsWith(`${PLACE}/`)

/** @param {string} source @returns {string | undefined} the folder of the package, in the version that Baton is locked to */
const findZod = (source) => {
  const wanted = JSON.parse(readFileSync(join(source, "package.json"), "utf8")).dependencies?.zod
  for (const from of [source, join(source, ".opencode"), join(source, "scripts/demo-packages")]) {
    try {
      const found = createRequire(join(from, "package.json")).resolve("zod/package.json")
      if (JSON.parse(readFileSync(found, "utf8")).version === wanted) return dirname(found)
    } catch {
      // Not there: see the next one.
    }
  }
  return undefined
}

/** @param {string} source the checkout, or the package @returns {[path: string, content: Buffer][]} none where zod is not there */
export const zodFiles = (source) => {
  const zod = isFile(join(source, "package.json")) ? findZod(source) : undefined
  if (zod === undefined) return []
  const code = FOLDERS.flatMap((folder) =>
    readdirSync(join(zod, "v4", folder))
      .filter((name) => name.endsWith(".js"))
      .map((name) => `v4/${folder}/${name}`),
  )
  const { name, version, license } = JSON.parse(readFileSync(join(zod, "package.json"), "utf8"))
  const description = `${JSON.stringify({ name, version, license, type: "module" }, undefined, 2)}\n`
  return [
    ...["LICENSE", LANGUAGE, ...code].map(
      (path) =>
        /** @type {[string, Buffer]} */ ([`${PLACE}/${path.replace(/^v4\//, "")}`, readFileSync(join(zod, path))]),
    ),
    [`${PLACE}/locales/index.js`, Buffer.from(LANGUAGES)],
    [`${PLACE}/package.json`, Buffer.from(description)],
  ]
}
