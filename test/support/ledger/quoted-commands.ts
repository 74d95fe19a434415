export type QuotedCommand = { command: string; lines: string[] }

const BLOCK = /^```console\n([\s\S]*?)^```$/gm

/** The commands in a page's `console` blocks, after `$ `, each with its quoted lines of output. */
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

/** Removes ids and times, which differ between runs. */
export const withoutIds = (text: string): string =>
  text
    .replaceAll(/\b(ts|lrn)-[0-9a-f]{6}\b/g, "$1-ID")
    .replaceAll(/\bses_\w+/g, "SESSION")
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d/g, "TIME")
