# Sourced by the scripts that need the development packages. Needs Node >= 20 and npm, nothing else.

# What is written to a file has no escape codes.
if [ -t 2 ]; then mark=$(printf '\033[1m==>\033[0m'); else mark='==>'; fi
say() { printf '%s %s\n' "$mark" "$*" >&2; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

require_node() {
  command -v node >/dev/null 2>&1 || fail "Node 20 or newer is needed and no node is on PATH: see https://nodejs.org"
  command -v npm >/dev/null 2>&1 || fail "npm is needed and is not on PATH: it comes with Node"
  major=$(node -p 'process.versions.node.split(".")[0]')
  [ "$major" -ge 20 ] || fail "Node 20 or newer is needed; this is $(node --version)"
}

# Installs the locked packages once; again only when the lock file has changed.
install_packages() {
  require_node
  stamp=.cache/packages.stamp
  if [ -f "$stamp" ] && [ -d node_modules ] && cmp -s package-lock.json "$stamp"; then return 0; fi
  say "Installing packages, three OpenCode versions among them (about 860 MB on disk; once, 20 s to 2 min)"
  npm ci --no-audit --no-fund --loglevel=error >&2 || fail "npm ci failed; see its message above"
  mkdir -p .cache
  cp package-lock.json "$stamp"
}

# Finds the newest OpenCode in the development packages. Gives: opencode.
find_opencode() {
  require_node
  opencode=node_modules/opencode-newest-$(node -p 'process.platform + "-" + process.arch')/bin/opencode
  # Packages that were put there by hand are taken as they are.
  if [ -f .cache/packages.stamp ] || [ ! -x "$opencode" ]; then install_packages; fi
  [ -x "$opencode" ] || fail "OpenCode is not installed: expected $opencode; run npm ci"
}

# Runs a TypeScript program on the runtime that OpenCode brings.
run_program() {
  BUN_BE_BUN=1 "$opencode" --no-env-file --config=/dev/null run "$@"
}

# Makes a folder for all that a program leaves behind, and removes it at the end, whatever happens.
use_own_folder() {
  TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/baton-$1-XXXXXX")
  export TMPDIR
  trap 'end_terminals "$TMPDIR"; rm -rf "$TMPDIR"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

# Ends the terminals that test/support/opencode/tui.ts has left below a folder when its process was ended.
end_terminals() {
  for socket in "$1"/*/home/tmux-*.sock; do
    [ ! -S "$socket" ] || tmux -S "$socket" kill-server 2>/dev/null || :
  done
}

# Finds what the demo needs in the development packages, or installs its own smaller set once.
# Gives: packages (a node_modules folder), opencode (the binary in it).
install_demo_packages() {
  require_node
  for packages in "$PWD/node_modules" "$PWD/scripts/demo-packages/node_modules"; do
    status=0
    opencode=$(node scripts/demo-packages/find.mjs "$packages") || status=$?
    [ "$status" = 2 ] && exit 1
    [ "$status" != 0 ] || return 0
  done
  say "Installing OpenCode and a mock model server (once; about 75 MB to download, 260 MB on disk)"
  (cd scripts/demo-packages && npm ci --no-audit --no-fund --loglevel=error >&2) || fail "npm ci failed; see its message above"
  opencode=$(node scripts/demo-packages/find.mjs "$packages") ||
    fail "npm has not installed OpenCode for this machine into $packages"
}

# Finds OpenCode 2, or installs it once. Gives: opencode_2 (its binary).
install_demo_line_2() {
  for opencode_2 in node_modules scripts/demo-packages/line-2/node_modules; do
    opencode_2=$PWD/$opencode_2/opencode-two-linux-x64/bin/opencode
    [ ! -x "$opencode_2" ] || return 0
  done
  say "Installing OpenCode 2 (once; about 65 MB to download, 200 MB on disk)"
  (cd scripts/demo-packages/line-2 && npm ci --no-audit --no-fund --loglevel=error >&2) || fail "npm ci failed; see its message above"
  [ -x "$opencode_2" ] || fail "npm has OpenCode 2.0.15 for Linux on x64 alone, and not for this machine"
}
