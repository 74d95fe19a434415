import { spawnSync } from "node:child_process"
import { once } from "node:events"
import { createServer, get, type RequestListener } from "node:http"
import { basename } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { noteProject } from "../../../.opencode/baton/live-state/projects.ts"
import { promised } from "../../requirements.ts"
import { makeOwnFolder } from "../../support/files/own-state.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { NEWEST, NEWEST_OR_ALL, openSharedTask, TASK } from "../../support/index.ts"
import { findChromium, startBrowser, type TestBrowser } from "../../support/opencode/browser.ts"
import { liveFolder } from "../../support/opencode/live-stream.ts"
import { createStatefileFolder, observePage } from "../../support/opencode/observed-page.ts"
import { writeStatefile } from "../../support/opencode/observer.ts"
import {
  contrastsOnPage,
  countUnnamedButtons,
  focusedText,
  refusesMarkup,
  widthsOnPage,
} from "../../support/opencode/page-probes.js"
import { compactsOnce, createSession, liveState } from "../sessions.ts"

/** A server on 127.0.0.1 that can listen again on the port that it had. */
const createListener = (respond: RequestListener) => {
  const server = createServer(respond)
  return {
    listen: async (port = 0): Promise<number> => {
      server.listen(port, "127.0.0.1")
      await once(server, "listening")
      return Object(server.address()).port
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** A way to the observer that can be cut. */
const forwardTo = (port: number) =>
  createListener(({ url, headers }, response) => {
    const host = `127.0.0.1:${port}`
    const asked = get(
      new URL(url ?? "/", `http://${host}`),
      { agent: false, headers: { ...headers, host } },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      },
    )
    asked.on("error", () => response.destroy())
    response.on("close", () => asked.destroy())
  })

// scripts/test warns that these are left out.
describe.skipIf(!findChromium())("the page in Chromium", () => {
  let browser: TestBrowser
  beforeAll(async () => {
    browser = await startBrowser()
  })
  afterAll(() => browser.close())

  describe.each(NEWEST_OR_ALL)("with OpenCode $version", (binary) => {
    test(
      promised(
        "live-state.C2",
        "the page in Chromium shows at once that an agent starts, asks, is compacted, finishes",
      ),
      async () => {
        const task = await openSharedTask(binary, compactsOnce, { config: { permission: { bash: "ask" } } })
        const { directory, environment } = task.project
        const observed = await observePage({ binary, cwd: directory, environment })
        const { page, errors } = await browser.open(observed.url)
        await page.getByRole("heading", { name: "No agents yet" }).waitFor()
        const loadedAt = await page.evaluate(() => performance.timeOrigin)
        const id = await createSession(task)
        const answered = task.say(task.message, id)
        const row = page.locator(".row")
        await row.getByRole("button", { name: "A scripted title" }).waitFor()
        await page.locator("section", { hasText: "Waiting for you" }).getByText("Permission: ").waitFor()
        await row.locator(".place", { hasText: basename(directory) }).waitFor()
        await row.locator(".task", { hasText: task.taskID }).getByText(TASK.title).waitFor()
        expect(await page.title()).toBe("(1) waiting · Baton")
        const { tui_focus, extensions } = liveState(directory)
        expect(extensions.permission_subject).not.toBe("")
        expect(await row.locator(".wait").textContent()).toContain(`bash${extensions.permission_subject}`)
        await task.client.postSessionIdPermissionsPermissionId({
          path: { id, permissionID: tui_focus.details.id },
          body: { response: "always" },
        })
        await row.getByText("1 compaction", { exact: true }).waitFor()
        await answered
        await row.getByText("1 turn", { exact: true }).waitFor()
        await row.getByText(/^idle · /).waitFor()
        await row.getByText("Compaction 1:").waitFor()
        expect(await row.locator(".wait").count()).toBe(0)
        for (const layer of ["busy", "permission", "compaction", "turn"])
          await expect.poll(() => row.locator(`.layer.${layer}`).getAttribute("d"), { message: layer }).toMatch(/^M/)
        expect(await page.evaluate(() => performance.timeOrigin)).toBe(loadedAt)
        expect(errors).toEqual([])
      },
    )
  })

  const setUp = async (options?: Parameters<TestBrowser["open"]>[1]) => {
    const states = createStatefileFolder()
    const start = { binary: NEWEST, cwd: states.project, environment: states.environment }
    const observed = await observePage(start)
    return { states, start, observed, ...(await browser.open(observed.url, options)) }
  }

  test(promised("live-state.C2", "what an agent wrote is text and nothing else"), async () => {
    const { states, page, errors } = await setUp()
    const hostile = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`
    states.write("one", {
      c2c_session_id: hostile,
      root_opencode_session_id: hostile,
      pendingQuestion: { id: "q", header: hostile, text: hostile, options: [hostile] },
      agent: { is_idle: false, turn_count: 0, last_step: null, provider_id: hostile, model_id: hostile },
      extensions: { task: { id: hostile, role: hostile }, compactions: 1 },
    })
    await page.getByRole("button", { name: "<img src=x" }).click()
    expect(await page.locator(".options li").textContent()).toBe(hostile)
    expect(await page.locator("main :is(img, script)").count()).toBe(0)
    expect(await page.title()).toBe("(1) waiting · Baton")
    expect(await page.evaluate(refusesMarkup), "Trusted Types").toBe(true)
    expect(errors.filter((error) => !error.includes("TrustedHTML"))).toEqual([])
  })

  test(
    promised(
      ["waiting.B1", "waiting.B2"],
      "the page in Chromium shows who asks, also in another project, and a provider asked again",
    ),
    async () => {
      const { states, page } = await setUp()
      const asked = (id: string, about: object) => ({
        ...{ kind: "permission", id, title: "bash", type: "bash", subject: `run ${id}`, session_id: "ses_sub" },
        ...{
          root_session_id: "ses_one",
          root_title: "One",
          subagent: null,
          since: "2026-01-01T00:00:00.000Z",
          ...about,
        },
      })
      const place = { directory: states.project, server_url: "http://127.0.0.1:4096/" }
      const retry = {
        message: "Too many",
        attempt: 2,
        next_at: null,
        since: "2026-01-01T00:00:00.000Z",
        subagent: null,
      }
      states.write("one", { extensions: { place, waiting: [asked("per_1", { subagent: "Look around" })] } })
      states.write("two", { extensions: { waiting: [], retry } })
      const other = temporaryFolder()
      makeOwnFolder({ directory: other, environment: states.environment }, "live")
      writeStatefile(liveFolder(other), "three", { extensions: { waiting: [asked("per_2", {})] } })
      noteProject(other, states.environment)
      const waiting = page.locator("section", { hasText: "Waiting for you" })
      const one = waiting.locator(".row", { hasText: "run per_1" })
      await one.getByText("subagent Look around").waitFor()
      await one.getByText(/^opencode attach http:\S+ --dir \S+ --session ses_one$/).waitFor()
      await waiting
        .locator(".row", { hasText: basename(other) })
        .getByText("run per_2")
        .waitFor()
      await page
        .locator('.row[data-doing="retry"]', { hasText: "two" })
        .getByText("Too many · attempt 2 failed")
        .waitFor()
      expect(await page.title()).toBe("(2) waiting · Baton")
    },
  )

  test(promised("live-state.C2", "a lost connection is shown, and made again by itself"), async () => {
    const { states, observed, page } = await setUp()
    const way = forwardTo(observed.port)
    const port = await way.listen()
    await page.goto(observed.url.replace(String(observed.port), String(port)))
    states.write("one")
    await page.getByRole("button", { name: "one", exact: true }).waitFor()
    await way.close()
    await page.getByRole("alert").getByText("The connection to the observer is lost.").waitFor()
    await way.listen(port)
    states.write("two")
    await page.getByRole("button", { name: "two", exact: true }).waitFor()
    states.write("two", { opencode_pid: spawnSync("true").pid })
    await page.locator('.row[data-doing="gone"]', { hasText: "two" }).waitFor()
    await expect.poll(() => page.locator("#lost").isHidden()).toBe(true)
    await way.close()
  })

  test(
    promised("trust.A8", "a page that is left open gives no token to who listens next, and says what to do"),
    async () => {
      const { states, start, observed, page } = await setUp()
      states.write("one")
      await page.getByRole("button", { name: "one", exact: true }).waitFor()
      const { page: other } = await browser.open(new URL("/", observed.url).href)
      await other.getByRole("alert").getByText("open the address that it printed").waitFor()
      expect(await other.locator(".row").count()).toBe(0)
      expect(await observed.stop()).toBe(0)
      await page.getByRole("alert").getByText("The observer has ended.").waitFor()
      const asked: string[] = []
      const listener = createListener(({ url = "" }, response) => {
        asked.push(url)
        response.writeHead(404).end()
      })
      await listener.listen(observed.port)
      // The other one goes on asking, every two seconds; the left one would have asked by then.
      await expect.poll(() => asked.length).toBeGreaterThanOrEqual(3)
      await listener.close()
      expect(new Set(asked)).toEqual(new Set(["/events?"]))
      const next = await observePage({ ...start, args: ["--port", String(observed.port)] })
      await page.goto(next.url)
      await page.getByRole("button", { name: "one", exact: true }).waitFor()
      await expect.poll(() => page.locator("#lost").isHidden()).toBe(true)
    },
  )

  test(promised("live-state.C2", "everything on the page can be done with the keyboard"), async () => {
    const { states, page } = await setUp()
    states.write("one", { agent: { is_idle: true, turn_count: 0 } })
    states.write("two", { pendingQuestion: { id: "q", header: "", text: "Which one?", options: ["this", "that"] } })
    await page.getByText("Which one?").waitFor()
    await page.getByRole("button", { name: "one", exact: true }).waitFor()
    const focused = () => page.evaluate(focusedText)
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    expect(await focused()).toContain("two")
    await page.keyboard.press("Enter")
    await page.getByText("Without a task nothing is recorded.").waitFor()
    await page.keyboard.press("Tab")
    expect(await focused()).toContain("one")
    await page.getByRole("searchbox").focus()
    await page.keyboard.type("nobody")
    await page.getByText("No agent fits the filter.").waitFor()
    await page.keyboard.press("Escape")
    await page.getByRole("button", { name: "one", exact: true }).waitFor()
    await page.keyboard.type("waiting")
    await expect.poll(() => page.locator(".row").count()).toBe(1)
  })

  test.each(["light", "dark"] as const)(
    promised("live-state.C2", "the page in Chromium fits a phone in %s, and every part has a name and enough contrast"),
    async (colorScheme) => {
      const { states, page } = await setUp({
        viewport: { width: 360, height: 740 },
        colorScheme,
        reducedMotion: "reduce",
      })
      states.write(`agent-${"long".repeat(30)}`, {
        pendingQuestion: { id: "q", header: "H", text: "x".repeat(400), options: ["y".repeat(200)] },
      })
      await page.locator(".wait").waitFor()
      const widths = await page.evaluate(widthsOnPage)
      expect(widths[0]).toBeLessThanOrEqual(widths[1] ?? 0)
      expect(await page.locator("svg[role=img] title").first().textContent()).toMatch(/^The last \d+ min: /)
      expect(await page.evaluate(countUnnamedButtons)).toBe(0)
      const contrasts = await page.evaluate(contrastsOnPage)
      expect(contrasts.filter(({ isEnough }) => !isEnough)).toEqual([])
    },
  )
})
