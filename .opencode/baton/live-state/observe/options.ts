const MAX_PORT = 65_535

/**
 * Reads the page's port from the options: undefined for no page, 0 for any free one.
 *
 * @throws Error with what was expected and received
 */
export const readWebPort = ({
  web,
  port,
  json,
}: {
  web: boolean
  port?: string | undefined
  json: boolean
}): number | undefined => {
  if (web && json) throw new Error("expected --web or --json, received both")
  if (port !== undefined && !web) throw new Error("--port is for the page: expected it together with --web")
  if (!web) return undefined
  if (port === undefined) return 0
  const number = /^\d{1,5}$/.test(port) ? Number(port) : Number.NaN
  if (number >= 1 && number <= MAX_PORT) return number
  throw new Error(`expected --port between 1 and ${MAX_PORT}, received '${port}'`)
}
