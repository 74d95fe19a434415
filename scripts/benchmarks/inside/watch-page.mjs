/**
 * watch-page.mjs CHROMIUM URL WINDOWS WINDOW_MS: opens the page in headless Chromium and prints times in ms: `paint` from the
 * write of agent 0's file to the frame after it was shown, `key` from a key to the frame after it, `longest` the longest task of
 * each window (0: none took 50). On Node, since Bun cannot speak to the browser over pipes yet.
 */
import { chromium } from "playwright-core"

const [executablePath, url, windows, windowMs] = process.argv.slice(2)
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] })
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
await page.addInitScript(() => {
  const seen = { paint: [], key: [], tasks: [] }
  Object.assign(globalThis, { seen })
  const afterFrame = (then) => requestAnimationFrame(() => setTimeout(() => then()))
  const tasks = new PerformanceObserver((list) => seen.tasks.push(...list.getEntries().map((task) => task.duration)))
  tasks.observe({ type: "longtask" })
  addEventListener("keydown", ({ timeStamp }) => afterFrame(() => seen.key.push(performance.now() - timeStamp)), true)
  let last = ""
  const look = () => {
    const name = [...document.querySelectorAll(".label")].find((each) => each.textContent.startsWith("agent-0 "))
    const writtenAt = name?.textContent.split(" ")[1]
    if (!writtenAt || writtenAt === last) return
    last = writtenAt
    afterFrame(() => seen.paint.push(Date.now() - Number(writtenAt)))
  }
  addEventListener("DOMContentLoaded", () =>
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true }),
  )
})
await page.goto(url)
await page.locator(".row").nth(49).waitFor({ state: "attached" })
const take = () =>
  page.evaluate(() => Object.fromEntries(Object.entries(seen).map(([name, all]) => [name, all.splice(0)])))
await page.waitForTimeout(Number(windowMs))
await take()
const result = { paint: [], key: [], longest: [] }
for (let window = 0; window < Number(windows); window++) {
  for (let key = 0; key < 5; key++) {
    await page.keyboard.press(key % 2 === 0 ? "Tab" : "Shift+Tab")
    await page.waitForTimeout(Number(windowMs) / 5)
  }
  const { paint, key, tasks } = await take()
  result.paint.push(...paint)
  result.key.push(...key)
  result.longest.push(Math.max(0, ...tasks))
}
await browser.close()
console.log(JSON.stringify(result))
