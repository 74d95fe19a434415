import { BENCHMARKS, type Results } from "./results.ts"
import { describeConditions, tablesOf } from "./tables.ts"

/**
 * Puts the tables of the results between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->` in a page; the rest of the
 * page is a person's and stays. Pure: the same results give the same page.
 *
 * @throws when a measurement has no place in the page
 */
export const renderDocument = (page: string, { measurements }: Results): string =>
  BENCHMARKS.reduce((text, name) => {
    const measurement = measurements[name]
    if (!measurement) return text
    const [opening, closing] = [`<!-- bench:${name} -->`, `<!-- /bench:${name} -->`]
    const start = text.indexOf(opening)
    const end = text.indexOf(closing)
    if (start < 0 || end < start) throw new Error(`the page has no place for ${name}: expected ${opening} … ${closing}`)
    const parts = [opening, describeConditions(measurement), ...tablesOf(measurement)]
    return `${text.slice(0, start)}${parts.join("\n\n")}\n\n${text.slice(end)}`
  }, page)
