/** What the probe inside OpenCode's process tells, after two forced collections. */
export type Sample = {
  heapBytes: number
  residentBytes: number
  /** Open descriptors by kind: socket, pipe, file, anon_inode. */
  descriptors: Record<string, number>
  children: number
  /** Timers that wait and that the bundle started. */
  timers: number
  /** Maps and sets in the heap. */
  collections: number
  /** Each compacting hook's time since the sample before, in milliseconds. */
  hookMs: number[]
}
