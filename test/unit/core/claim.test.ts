import { describe, expect, test } from "vitest"
import { claimBundle } from "../../../.opencode/baton/core/claim.ts"
import { promised } from "../../requirements.ts"

let directories = 0
const newProject = () => {
  const projectRoot = `/projects/${directories++}`
  const claim = (bundleRoot: string, directory = projectRoot) =>
    claimBundle({ feature: "f", directory, projectRoot, bundleRoot })
  return { claim, own: `${projectRoot}/.opencode/baton`, global: "/home/user/.config/opencode/baton" }
}

describe("several copies of the bundle", () => {
  test(promised("faults.F1", "the copy inside the project serves it, whichever is loaded first"), () => {
    const first = newProject()
    const globalFirst = first.claim(first.global)
    const projectSecond = first.claim(first.own)
    expect([globalFirst.isActive(), projectSecond.isActive()]).toEqual([false, true])

    const second = newProject()
    const projectFirst = second.claim(second.own)
    const globalSecond = second.claim(second.global)
    expect([projectFirst.isActive(), globalSecond.isActive()]).toEqual([true, false])
  })

  test(promised("faults.F1", "the global copy serves a project without one, and each directory on its own"), () => {
    const { claim, global } = newProject()
    expect(claim(global).isActive()).toBe(true)
    expect(claim(global, "/elsewhere").isActive()).toBe(true)
  })

  test(
    promised("faults.F1", "a directory initialised again is served by the newer instance, and release ends it"),
    () => {
      const { claim, own } = newProject()
      const earlier = claim(own)
      const later = claim(own)
      expect([earlier.isActive(), later.isActive()]).toEqual([false, true])
      earlier.release()
      expect(later.isActive()).toBe(true)
      later.release()
      expect(later.isActive()).toBe(false)
    },
  )

  test(promised("faults.F1", "the copy loaded later knows of the other, whichever of them serves"), () => {
    const first = newProject()
    expect(first.claim(first.global).other).toBeUndefined()
    expect(first.claim(first.own).other).toBe(first.global)

    const second = newProject()
    expect(second.claim(second.own).other).toBeUndefined()
    expect(second.claim(second.own).other).toBeUndefined()
    expect(second.claim(second.global).other).toBe(second.own)
  })
})
