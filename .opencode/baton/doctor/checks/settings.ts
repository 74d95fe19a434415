import { readSettings, SETTINGS_FILE } from "../../host/settings.ts"
import { type Check, ok, warning } from "../finding.ts"

export const settingsCheck: Check = {
  id: "settings",
  needsBundle: true,
  examine: async ({ root }) => {
    const read = await readSettings(root)
    if (read.kind === "unusable") {
      const fix = `Mend ${SETTINGS_FILE}; docs/settings.md lists what it may hold. Until then the defaults are used.`
      return [warning(`${SETTINGS_FILE} cannot be used: ${read.reason}`, fix)]
    }
    return [ok(read.isDefault ? `no ${SETTINGS_FILE}: the defaults are used` : `${SETTINGS_FILE} is in order`)]
  },
}
