/** photograph.mjs SCENE URL PREFIX: the page of `baton observe --web` in BATON_CHROMIUM, as PREFIX-light.png and -dark.png. */
import { chromium } from "playwright-core"

/** Window height of each scene, and the condition that it waits for. */
const SCENES = {
  observe: {
    height: 920,
    ready: async (page) => {
      await page.getByText("Try the new bundler").waitFor()
      await page.getByText("Tests pass on both platforms").waitFor()
      await page.locator(".layer.question").first().waitFor({ state: "attached" })
    },
  },
  tour: {
    height: 560,
    ready: async (page) => {
      await page.locator('.row[data-doing="busy"]').waitFor()
      await page.locator(".row .name").click()
      await page.getByText("Compaction 2:").waitFor()
    },
  },
}

const [scene, url, prefix] = process.argv.slice(2)
if (!SCENES[scene] || !url || !prefix) throw new Error("expected SCENE URL PREFIX; start it with ./scripts/picture")
const { height, ready } = SCENES[scene]

const browser = await chromium.launch({ executablePath: process.env.BATON_CHROMIUM, args: ["--no-sandbox"] })
try {
  for (const colorScheme of ["light", "dark"]) {
    const page = await browser.newPage({ viewport: { width: 1180, height }, colorScheme, deviceScaleFactor: 1.5 })
    await page.goto(url)
    await ready(page)
    await page.screenshot({ path: `${prefix}-${colorScheme}.png` })
    await page.close()
  }
} finally {
  await browser.close()
}
