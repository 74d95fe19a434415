# Part of scripts/install: what came from here before, and what is to become of each file. Changes nothing.
# Expects: source, project (absolute folders), MANIFEST, NL, TAB. Gives: plan, record, folders and the four counts.

# ---- What came from here before ---------------------------------------------------------------------------------------

# Only paths that this script could have written: a damaged manifest must not reach anything else.
known=''
if [ -f "$project/$MANIFEST" ]; then
  known=$(grep -E "^[0-9a-z]+$TAB[0-9-]+$TAB(\.opencode|\.opencode/(plugins|baton)(/.*)?|prompts(/.*)?)\$" \
    "$project/$MANIFEST" | grep -Fv '/..') || known=''
fi
known_files=$(printf '%s\n' "$known" | grep -v "^dir$TAB") || known_files=''
known_paths=$(printf '%s\n' "$known_files" | cut -f 3 | sort -u)
known_folders=$(printf '%s\n' "$known" | grep "^dir$TAB" | cut -f 3 | sort -u) || known_folders=''

exists() { [ -e "$1" ] || [ -L "$1" ]; }
is_regular() { [ -f "$1" ] && [ ! -L "$1" ]; }
has_line() { case "$NL$1$NL" in *"$NL$2$NL"*) ;; *) return 1 ;; esac; }
is_known() { has_line "$known_paths" "$1"; }

# The manifest line for the content of file $1 under the path $2.
line_of() {
  sum=$(cksum <"$1") || fail "cannot read $1"
  printf '%s\t%s\t%s' "${sum%% *}" "$(printf %s "${sum#* }" | tr -d ' ')" "$2"
}
# The file at path $1 is one of ours, as it was put there.
is_untouched() { is_regular "$project/$1" && has_line "$known_files" "$(line_of "$project/$1" "$1")"; }

# ---- What is to become of each file -----------------------------------------------------------------------------------

# plan: lines of action, path, and the file of the checkout or the reason; record: the manifest's lines afterwards.
plan='' record='' folders=$known_folders added=0 updated=0 removed=0 kept=0
step() { plan="$plan$1$TAB$2$TAB${3-}$NL"; }

# The missing folders above path $1.
plan_folders() {
  above=${1%/*}
  while ! exists "$project/$above" && ! has_line "$folders" "$above"; do
    folders="$folders$NL$above"
    above=${above%/*}
  done
}

# File $2 of the checkout goes to path $1 of the project.
plan_file() {
  line=$(line_of "$source/$2" "$1")
  if ! exists "$project/$1"; then
    plan_folders "$1"
    step add "$1" "$2"
    added=$((added + 1))
  elif is_regular "$project/$1" && cmp -s "$source/$2" "$project/$1"; then
    is_known "$1" || return 0
    if [ -x "$source/$2" ] && [ ! -x "$project/$1" ]; then
      step update "$1" "$2"
      updated=$((updated + 1))
    fi
  elif is_untouched "$1"; then
    step update "$1" "$2"
    updated=$((updated + 1))
  else
    plan_beside "$1" "$2"
    return 0
  fi
  record="$record$line$NL"
}

# The file at path $1 is the user's: it stays, and the new version goes beside it under a name OpenCode does not load.
plan_beside() {
  kept=$((kept + 1))
  case $1 in
    *.baton-new)
      step keep "$1" "you changed it; delete it to get the newest version here"
      return 0
      ;;
  esac
  why='it was yours before'
  if is_known "$1"; then
    why='you changed it'
    record="$record$line$NL"
  fi
  step keep "$1" "$why; the new version is beside it as ${1##*/}.baton-new"
  plan_file "$1.baton-new" "$2"
}

# Path $1 is on the manifest and no longer wanted.
plan_removal() {
  if is_untouched "$1"; then
    step remove "$1"
    removed=$((removed + 1))
  elif exists "$project/$1"; then
    step keep "$1" "you changed it; it is yours now"
    kept=$((kept + 1))
  fi
}

# The files a project gets: by folder, not by a list, without tests and litter.
bundle() {
  cd "$source"
  for file in .opencode/plugins/*.ts; do
    [ ! -f "$file" ] || printf '%s\n' "$file"
  done
  find .opencode/baton prompts -type d -name node_modules -prune -o \
    -type f ! -name '.*' ! -name '*.test.ts' ! -name '*.baton-new' ! -name '*~' -print 2>/dev/null | sort
}

# Every folder above the paths in $1, each with a leading slash, and the project itself.
folders_above() {
  printf '%s\n' "$1" | awk '{ while (sub(/\/?[^\/]*$/, "")) { if (seen[$0]++) break; print "/" $0 } }' | sort -u
}
check_folder() {
  [ ! -L "$1" ] || fail "$1 is a symbolic link to $(readlink "$1"). Nothing was changed.
  Replace the link by a folder, or install into the project it leads to"
  exists "$1" || return 0
  [ -d "$1" ] || fail "$1 is not a folder. Nothing was changed. Move it away and try again"
  [ -w "$1" ] || fail "cannot write in $1. Nothing was changed. Make it writable (chmod u+w) or run as its owner"
}

files=''
[ "$mode" = uninstall ] || files=$(bundle) || files=''
[ "$mode" = uninstall ] || [ -n "$files" ] || fail "no files in $source/.opencode/baton: the checkout is incomplete"
set -f
IFS=$NL
for folder in $(folders_above "$NL$files$NL$known_paths"); do check_folder "$project$folder"; done
for file in $files; do
  case $file in
    .opencode/baton/ignore) plan_file .opencode/baton/.ignore "$file" ;;
    *) plan_file "$file" "$file" ;;
  esac
done
wanted=$(printf %s "$record" | cut -f 3)
for file in $known_paths; do
  has_line "$wanted" "$file" || plan_removal "$file"
done
