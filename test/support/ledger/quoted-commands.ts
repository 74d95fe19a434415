export type QuotedCommand = { command: string; lines: string[] }

const BLOCK = /^```console\n([\s\S]*?)^```$/gm

/** The commands of a page's `console` blocks, behind `$ `, each with the lines of its output that are quoted. */
export const readQuotedCommands = (markdown: string): QuotedCommand[] =>
  [...markdown.matchAll(BLOCK)].flatMap(([, block = ""]) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((quoted) => {
        const [command = "", ...lines] = quoted.trimEnd().split("\n")
        return { command, lines }
      }),
  )

/** A text without what differs from run to run: ids and times. */
export const withoutIds = (text: string): string =>
  text
    .replaceAll(/\b(ts|lrn)-[0-9a-f]{6}\b/g, "$1-ID")
    .replaceAll(/\bses_\w+/g, "SESSION")
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d/g, "TIME")
