import { addedTo, type Sizes } from "./peer-retention.ts"
import { type Figure, type PeerRetentionRow, toFigure } from "./results.ts"
import { SUBJECT_LABELS, type SubjectName } from "./subjects.ts"

type Work = { row: PeerRetentionRow; sizes: Sizes }

/** Characters of requests, in the order of the tables; each is read from one piece of work. */
const QUANTITIES = {
  "first-turn": ({ turns }: Sizes) => turns.slice(0, 1),
  "later-turn": ({ turns }: Sizes) => turns.slice(1),
  compaction: ({ compactions }: Sizes) => compactions,
  whole: ({ total }: Sizes) => [total],
} as const

type Quantity = keyof typeof QUANTITIES

const isSameWork = (a: PeerRetentionRow) => (b: { row: PeerRetentionRow }) =>
  a.summariser === b.row.summariser && a.compactions === b.row.compactions

const valuesOf = (quantity: Quantity, name: SubjectName, work: readonly Work[]): number[] => {
  const read = QUANTITIES[quantity]
  // The whole of a session is told for the longest alone: sessions of different lengths have no common middle.
  const longest = Math.max(...work.map(({ row }) => row.compactions))
  const own = work.filter(({ row }) => row.subject === name && (quantity !== "whole" || row.compactions === longest))
  return own.flatMap(({ row, sizes }) => {
    if (name === "plain") return read(sizes)
    const plain = work.filter((each) => each.row.subject === "plain").find(isSameWork(row))
    return plain ? addedTo(read(plain.sizes), read(sizes)) : []
  })
}

/** Plain OpenCode's requests in characters, and what each subject's have more in the same places of the same work. */
export const sizeFigures = (version: string, work: readonly Work[]): Figure[] => {
  const names = [...new Set(work.map(({ row }) => row.subject))]
  return (Object.keys(QUANTITIES) as Quantity[]).flatMap((quantity) =>
    names.flatMap((name) => {
      const values = valuesOf(quantity, name, work)
      const about = { id: `peers.${quantity}.${name}`, what: `${quantity}, ${SUBJECT_LABELS[name]}`, version } as const
      return values.length > 0 ? [toFigure({ ...about, unit: "characters" }, values)] : []
    }),
  )
}
