/** Removes ids and times, which differ between runs. */
export const withoutIds = (text: string): string =>
  text
    .replaceAll(/\b(ts|lrn)-[0-9a-f]{6}\b/g, "$1-ID")
    .replaceAll(/\bses_\w+/g, "SESSION")
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d/g, "TIME")
