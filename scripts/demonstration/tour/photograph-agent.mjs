/** photograph-agent.mjs URL PREFIX: the page of `baton observe --web` with its one agent at work, as PREFIX-light.png and -dark.png. */
import { photographPage } from "../photograph-page.mjs"

const [url, prefix] = process.argv.slice(2)
if (!url || !prefix) throw new Error("expected URL PREFIX; start it with ./scripts/picture tour")

await photographPage({
  url,
  prefix,
  size: { width: 1180, height: 560 },
  ready: async (page) => {
    await page.locator('.row[data-doing="busy"]').waitFor()
    await page.getByRole("button", { name: "opencode-my-project" }).click()
    await page.getByText("Compaction 2:").waitFor()
  },
})
