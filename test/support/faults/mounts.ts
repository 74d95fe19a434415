import { spawnSync } from "node:child_process"

/** A mount namespace that ends with the program, so that no mount is left behind. */
const OWN_MOUNTS = process.getuid?.() === 0 ? ["unshare", "--mount"] : ["unshare", "--map-root-user", "--mount"]

export const CAN_MOUNT =
  spawnSync(OWN_MOUNTS[0] ?? "", [...OWN_MOUNTS.slice(1), "sh", "-c", "mount -t tmpfs none /mnt"]).status === 0

/** Runs OpenCode after `mount`; the script's working directory is the project. */
export const behindMount = (mount: string): readonly string[] => [
  ...OWN_MOUNTS,
  "sh",
  "-ec",
  `${mount}\nexec "$@"`,
  "sh",
]
