import { spawnSync } from "node:child_process"

/** This machine can hold the OS boundary of a pass; scripts/test warns where it cannot. */
export const HAS_BUBBLEWRAP =
  spawnSync("bwrap", ["--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true"]).status === 0
