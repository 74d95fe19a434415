import { createHash } from "node:crypto"
import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { beforeEach, describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { snapshotTree } from "../../support/files/folder-tree.ts"
import { createSmallCheckout, type SmallCheckout } from "../../support/files/small-checkout.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"

const NAMES = ["handoff-command.md", "handoff.md", "planner.md", "worker.md"]
const OWN = "Dear {{customer}},\n"

let checkout: SmallCheckout

beforeEach(() => {
  checkout = createSmallCheckout()
})

const namesIn = (folder: string): string[] =>
  checkout.has(folder) ? readdirSync(join(checkout.project, folder)).sort() : []

describe("prompts", () => {
  test.each<[string, Record<string, string>, string?]>([
    ["its own handoff.md", { "prompts/handoff.md": OWN }],
    ["its own worker.md that quotes the comment", { "prompts/worker.md": "> <!-- baton:brief -->\n" }],
    ["prompts of other names", { "prompts/mail.md": "<!-- baton:handoff -->\n" }],
    ["nothing but a folder in it", { "prompts/mail/handoff.md": "<!-- baton:handoff -->\n" }],
    ["a folder called handoff.md", { "prompts/handoff.md/a.md": OWN }],
    ["a file of that name", { prompts: OWN }],
    ["a link to its own prompts", { "shared/mail.md": OWN }, "shared"],
    ["a link that leads nowhere", {}, "nowhere"],
  ])(promised("install.E7", "prompts go to .opencode/prompts where prompts holds %s"), (_, files, target) => {
    for (const [path, text] of Object.entries(files)) checkout.write(path, text)
    if (target !== undefined) checkout.link(target, "prompts")
    const before = snapshotTree(checkout.project)
    const { exitCode, stdout } = checkout.install()
    expect(exitCode).toBe(0)
    expect(stdout).toContain("Prompts: they are in .opencode/prompts; prompts is left to the project.\n")
    expect(namesIn(".opencode/prompts")).toEqual(NAMES)
    const outside = Object.entries(snapshotTree(checkout.project)).filter(([path]) => !path.startsWith(".opencode"))
    expect(Object.fromEntries(outside)).toEqual(before)
    expect(checkout.install().stdout).toContain("Nothing to do")
    checkout.install("--uninstall")
    expect(snapshotTree(checkout.project)).toEqual(before)
  })

  test.each<[string, () => void]>([
    ["is not there", () => {}],
    ["is empty", () => mkdirSync(join(checkout.project, "prompts"))],
    ...NAMES.map((name): [string, () => void] => [
      `has the ${name} that comes with Baton`,
      () => checkout.write(`prompts/${name}`, readFileSync(join(REPOSITORY, "prompts", name), "utf8")),
    ]),
    ["has one that you edited", () => checkout.write("prompts/handoff.md", "Mine.\r\n<!--\tbaton:handoff -->\r\n")],
    ["has one with a byte order mark", () => checkout.write("prompts/handoff.md", "\uFEFF<!-- baton:handoff -->\n")],
  ])(promised("install.E7", "prompts go to the folder prompts where it %s"), (_, prepare) => {
    prepare()
    const { exitCode, stdout } = checkout.install()
    expect(exitCode).toBe(0)
    expect(stdout).not.toContain("Prompts:")
    expect(namesIn("prompts")).toEqual(expect.arrayContaining(NAMES))
    expect(checkout.has(".opencode/prompts")).toBe(false)
  })

  test(promised("install.E7", "prompts stay in prompts where an earlier installation put them"), () => {
    checkout.ship("prompts/handoff.md", "Write the handoff.\n")
    checkout.install()
    for (const name of NAMES) checkout.write(`prompts/${name}`, OWN)
    checkout.ship("prompts/handoff.md", "<!-- baton:handoff -->\nNewer.\n")
    expect(checkout.install().stdout).toMatch(/keep +prompts\/handoff\.md: you changed it/)
    expect(checkout.has("prompts/handoff.md.baton-new")).toBe(true)
    expect(checkout.has(".opencode/prompts")).toBe(false)
  })

  test(
    promised("install.E7", "prompts stay in .opencode/prompts without the project's own, and keep your changes"),
    () => {
      checkout.write("prompts/mail.md", OWN)
      checkout.install()
      checkout.write(".opencode/prompts/worker.md", "<!-- baton:brief -->\nmine\n")
      expect(checkout.install().stdout).toMatch(/keep +\.opencode\/prompts\/worker\.md: you changed it/)
      expect(checkout.read("prompts/mail.md")).toBe(OWN)
      rmSync(join(checkout.project, "prompts"), { recursive: true })
      checkout.ship("prompts/handoff.md", "<!-- baton:handoff -->\nNewer.\n")
      expect(checkout.install().stdout).toMatch(/update +\.opencode\/prompts\/handoff\.md/)
      expect(checkout.has("prompts")).toBe(false)
      expect(checkout.install("--uninstall").stdout).toMatch(/keep +\.opencode\/prompts\/worker\.md/)
      expect(namesIn(".opencode/prompts")).toEqual(["worker.md"])
    },
  )

  test(promised("install.E7", "prompts are removed from both places at uninstall"), () => {
    checkout.write("prompts/mail.md", OWN)
    const before = snapshotTree(checkout.project)
    checkout.install()
    checkout.write("prompts/worker.md", "as installed\n")
    const sum = createHash("sha256").update("as installed\n").digest("hex")
    appendFileSync(join(checkout.project, ".opencode/baton/.manifest"), `${sum}\t13\tprompts/worker.md\n`)
    checkout.install("--uninstall")
    expect(snapshotTree(checkout.project)).toEqual(before)
  })
})
