import { arch, cpus, loadavg, release, totalmem, type } from "node:os"

/** What a reader needs to judge the figures; no host name, no paths. */
export type Machine = { cpu: string; cores: number; memoryGiB: number; system: string }

export const describeMachine = (): Machine => ({
  cpu: cpus()[0]?.model.trim() ?? "unknown",
  cores: cpus().length,
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  system: `${type()} ${release()} ${arch()}`,
})

/** The load average over the last minute, to one decimal. */
export const currentLoad = (): number => Math.round((loadavg()[0] ?? 0) * 10) / 10
