import { execFileSync } from "node:child_process"
import { delimiter, join } from "node:path"
import { chromium } from "playwright-core"

const NAMES = ["chromium", "chromium-browser", "google-chrome"]

const findChromium = () =>
  process.env.BATON_CHROMIUM ??
  (process.env.PATH ?? "")
    .split(delimiter)
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
    .find((path) => {
      try {
        execFileSync(path, ["--version"], { stdio: "ignore" })
        return true
      } catch {
        return false
      }
    })

/**
 * Photographs a page with Chromium (BATON_CHROMIUM, or on PATH): PREFIX-light.png and PREFIX-dark.png.
 *
 * @param size of the window, in CSS pixels
 * @param ready resolves when the page shows what is to be seen
 */
export const photographPage = async ({ url, prefix, size, ready }) => {
  const browser = await chromium.launch({ executablePath: findChromium(), args: ["--no-sandbox"] })
  try {
    for (const colorScheme of ["light", "dark"]) {
      const page = await browser.newPage({ viewport: size, colorScheme, deviceScaleFactor: 1.5 })
      await page.goto(url)
      await ready(page)
      await page.screenshot({ path: `${prefix}-${colorScheme}.png` })
      await page.close()
    }
  } finally {
    await browser.close()
  }
}
