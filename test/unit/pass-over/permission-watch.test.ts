import { expect, test } from "vitest"
import { createPermissionWatch } from "../../../.opencode/baton/pass-over/result/approval.ts"
import { promised } from "../../requirements.ts"

test(promised("soak.B4", "questions that nobody answered go with their session"), async () => {
  const refused: string[] = []
  const watch = createPermissionWatch({
    refuse: async (_sessionID, permissionID) => {
      refused.push(permissionID)
      return { kind: "ok", value: undefined }
    },
  })
  for (const sessionID of ["ses_gone", "ses_here"])
    watch.asked({ kind: "asked", sessionID, permissionID: `per_${sessionID}`, passID: "pass_1" })
  watch.forget("ses_gone")
  await watch.withdraw("pass_1")
  expect(refused).toEqual(["per_ses_here"])
})
