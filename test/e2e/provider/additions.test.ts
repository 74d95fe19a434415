import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { BOTH_ENDS, closeTaskProjects, openSharedTask } from "../../support/index.ts"
import {
  ADDITIONS,
  FEATURE_NAMES,
  mayAdd,
  REQUEST_NAMES,
  type RecordedRequests,
  recordRequests,
} from "../../support/model/request-scenario.ts"

closeTaskProjects()

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  let plain: Promise<RecordedRequests> | undefined

  test.each(FEATURE_NAMES)(
    promised("tokens.C2", "%s alone leaves requests that do not use it as they are, byte for byte"),
    async (feature) => {
      plain ??= recordRequests(binary, [], openSharedTask)
      const recorded = recordRequests(binary, [feature], openSharedTask)
      const [without, withFeature] = await Promise.all([plain, recorded])
      for (const name of REQUEST_NAMES.filter((each) => !mayAdd(feature, each)))
        expect(withFeature[name].text, name).toBe(without[name].text)
      const used = REQUEST_NAMES.filter((name) => withFeature[name].text !== without[name].text)
      expect(used).toEqual(ADDITIONS[feature].adds)
    },
  )
})
