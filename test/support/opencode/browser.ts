import { accessSync, constants } from "node:fs"
import { delimiter, isAbsolute, join } from "node:path"
import { type Browser, chromium } from "playwright-core"
import { deadline } from "./deadline.ts"

const NAMES = ["chromium", "chromium-browser", "google-chrome"]

const isProgram = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** This machine's Chromium: BATON_CHROMIUM, else the first on PATH. scripts/test warns if there is none. */
export const findChromium = (env: NodeJS.ProcessEnv = process.env): string | undefined =>
  env.BATON_CHROMIUM ||
  NAMES.flatMap((name) => (env.PATH ?? "").split(delimiter).map((folder) => join(folder, name))).find(
    (path) => isAbsolute(path) && isProgram(path),
  )

/** Playwright's own, on an idle machine. */
const PAGE_DEADLINE_MS = 30_000

/** @throws when no Chromium is found */
export const startBrowser = async () => {
  const executablePath = findChromium()
  if (!executablePath) throw new Error("no Chromium: expected one on PATH or in BATON_CHROMIUM")
  // The sandbox fails in containers, and this browser opens only the project's own page.
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"], timeout: deadline(PAGE_DEADLINE_MS) })
  return {
    /** A page of a fresh profile. `errors` are its exceptions, refused loads and console errors. */
    open: async (url: string, options: Parameters<Browser["newContext"]>[0] = {}) => {
      const context = await browser.newContext(options)
      context.setDefaultTimeout(deadline(PAGE_DEADLINE_MS))
      const page = await context.newPage()
      const errors: string[] = []
      page.on("pageerror", (error) => errors.push(error.message))
      page.on("console", (message) => {
        if (message.type() === "error" || message.type() === "warning") errors.push(message.text())
      })
      await page.goto(url)
      return { page, errors }
    },
    close: () => browser.close(),
  }
}

export type TestBrowser = Awaited<ReturnType<typeof startBrowser>>
