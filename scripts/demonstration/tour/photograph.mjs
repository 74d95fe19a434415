/** photograph.mjs URL PREFIX: the page of `baton observe --web` in BATON_CHROMIUM, as PREFIX-light.png and -dark.png. */
import { chromium } from "playwright-core"

const [url, prefix] = process.argv.slice(2)
const browser = await chromium.launch({ executablePath: process.env.BATON_CHROMIUM, args: ["--no-sandbox"] })
try {
  for (const colorScheme of ["light", "dark"]) {
    const viewport = { width: 1180, height: 560 }
    const page = await browser.newPage({ viewport, colorScheme, deviceScaleFactor: 1.5 })
    await page.goto(url)
    await page.locator('.row[data-doing="busy"]').waitFor()
    await page.getByRole("button", { name: "opencode-my-project" }).click()
    await page.getByText("Compaction 2:").waitFor()
    await page.screenshot({ path: `${prefix}-${colorScheme}.png` })
    await page.close()
  }
} finally {
  await browser.close()
}
