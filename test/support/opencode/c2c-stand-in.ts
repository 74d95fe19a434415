import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** Speaks c2c's commands and JSON: `poll-inbox --json`, `send ALIAS TEXT`, `oc-plugin stream-write-statefile`. */
const SCRIPT = `#!/bin/sh
here=\${0%/*}
case $1 in
  poll-inbox)
    list=
    for file in "$here"/inbox/*.json; do
      [ -f "$file" ] || continue
      list="$list\${list:+,}$(cat "$file")"
      rm "$file"
    done
    printf '{"session_id":"%s","messages":[%s]}\\n' "$C2C_MCP_SESSION_ID" "$list" ;;
  send)
    printf '%s\\n%s' "$2" "$3" >"$here/sent/$$.tmp"
    mv "$here/sent/$$.tmp" "$here/sent/$(date +%s%N)-$$" ;;
  oc-plugin)
    printf '%s\\n' "$C2C_MCP_SESSION_ID $*" >>"$here/writers"
    exec cat >>"$here/stream.jsonl" ;;
  *) exit 2 ;;
esac
`

/** A stand-in for c2c in the folder, which goes on PATH. */
export const createC2c = (folder: string) => {
  for (const part of ["inbox", "sent"]) mkdirSync(join(folder, part), { recursive: true })
  const program = join(folder, "c2c")
  writeFileSync(program, SCRIPT)
  chmodSync(program, 0o755)
  let count = 0
  return {
    program,
    environment: {
      PATH: `${folder}:${process.env.PATH}`,
      C2C_MCP_SESSION_ID: "oc-1",
      C2C_PLUGIN_POLL_INTERVAL_MS: "250",
    },
    /** A message from a peer, to be polled. */
    push: (from: string, content: string): void => {
      const path = join(folder, "inbox", `${String(++count).padStart(4, "0")}.json`)
      writeFileSync(`${path}.tmp`, JSON.stringify({ from_alias: from, to_alias: "oc-1", content }))
      renameSync(`${path}.tmp`, path)
    },
    /** Messages that were not polled yet. */
    waiting: (): number => readdirSync(join(folder, "inbox")).length,
    /** The messages that were sent, each as "alias, line break, text". */
    sent: (): string[] =>
      readdirSync(join(folder, "sent"))
        .filter((name) => !name.endsWith(".tmp"))
        .sort()
        .map((name) => readFileSync(join(folder, "sent", name), "utf8")),
    /** Session id and arguments of each writer that was started. */
    writers: (): string[] => {
      const path = join(folder, "writers")
      return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : []
    },
  }
}
