import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { findProjectRoot, nearestProject } from "../../../.opencode/baton/host/project.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"

/** @param folders to create below a new one, including `.opencode` and `.opencode/baton` */
const setUp = (...folders: string[]) => {
  const root = temporaryFolder()
  for (const folder of folders) mkdirSync(join(root, folder), { recursive: true })
  return { root, at: (...path: string[]) => join(root, ...path) }
}

describe("the project a directory belongs to", () => {
  test("is the nearest folder with .opencode when none has the bundle, and never above the worktree", () => {
    const { root, at } = setUp(".opencode", "work/deep/er")
    expect(findProjectRoot(at("work", "deep"), root)).toBe(root)
    expect(findProjectRoot(at("work", "deep"), at("work"))).toBe(at("work", "deep"))
    mkdirSync(at("work", "deep", ".opencode"))
    expect(findProjectRoot(at("work", "deep", "er"), root)).toBe(at("work", "deep"))
  })

  test("is the one that has the bundle, whatever a folder of settings on the way to it says", () => {
    const { root, at } = setUp(".opencode/baton", "pkg/.opencode", "pkg/src")
    expect(findProjectRoot(at("pkg", "src"), root)).toBe(root)
    expect(nearestProject(at("pkg", "src"))).toBe(root)
  })

  test("is the one that has the bundle outside git, too", () => {
    const { root, at } = setUp(".opencode/baton", "sub")
    expect(findProjectRoot(at("sub"), "/")).toBe(root)
    expect(findProjectRoot(at("sub"), at("sub"))).toBe(at("sub"))
  })

  test("is not the home folder, whose bundle serves every project, unless a person works right there", () => {
    const { root, at } = setUp(".opencode/baton", "project/.opencode", "project/src")
    expect(findProjectRoot(at("project"), "/", root)).toBe(at("project"))
    expect(findProjectRoot(at("project", "src"), at("project"), root)).toBe(at("project"))
    expect(nearestProject(at("project", "src"), root)).toBe(at("project"))
    expect(findProjectRoot(root, "/", root)).toBe(root)
  })
})
