# Part of scripts/install: carries the plan out. Every step can be repeated after a kill.
# Expects what install-plan.sh gives, and version.

halfway='What was done is on record: mend the cause and run the same command again'

# $1: the lines of the files. Folders that this script made are listed too, so that they can be removed.
write_manifest() {
  {
    printf '# What scripts/install put here: POSIX cksum, size, path. Baton %s\n' "$version"
    printf '%s\n' "$1" | grep . | sort -u
    printf '%s\n' "$folders" | grep . | sort -u | sed "s/^/dir$TAB-$TAB/"
  } >"$project/$MANIFEST.baton-tmp" && mv -f "$project/$MANIFEST.baton-tmp" "$project/$MANIFEST" ||
    fail "cannot write $project/$MANIFEST. $halfway"
}

# Path $1 gets the content of the checkout's file $2. The temporary name is fixed, so that the next run finds it.
place() {
  temporary=$project/$1.baton-tmp
  mkdir -p "${temporary%/*}" && rm -f "$temporary" && cp "$source/$2" "$temporary" && chmod u+w "$temporary" &&
    mv -f "$temporary" "$project/$1" || fail "cannot write $project/$1. $halfway"
}

carry_out() {
  for path in $known_paths; do
    [ ! -f "$project/$path.baton-tmp" ] || rm -f "$project/$path.baton-tmp" || fail "cannot write in $project. $halfway"
  done
  for entry in $plan; do
    action=${entry%%"$TAB"*} rest=${entry#*"$TAB"}
    path=${rest%%"$TAB"*} detail=${rest#*"$TAB"}
    case $action in
      add | update) place "$path" "$detail" ;;
      remove) rm -f "$project/$path" || fail "cannot remove $project/$path. $halfway" ;;
    esac
  done
}

# Folders that this script made; deepest first.
remove_empty_folders() {
  for folder in $(printf '%s\n' "$folders" | sort -r); do
    rmdir "$project/$folder" 2>/dev/null || continue
    folders=$(printf '%s\n' "$folders" | grep -Fxv "$folder") || folders=''
  done
}

install_bundle() {
  mkdir -p "$project/${MANIFEST%/*}" || fail "cannot create $project/${MANIFEST%/*}. Make $project writable and try again"
  write_manifest "$known_files$NL$record"
  carry_out
  remove_empty_folders
  write_manifest "$record"
}

# The manifest goes last, so that a killed run still knows what to remove. $1: one more folder to remove when empty.
uninstall_bundle() {
  carry_out
  has_line "$folders" "$1" || folders="$folders$NL$1"
  remove_empty_folders
  rm -f "$project/$MANIFEST" "$project/$MANIFEST.baton-tmp" || fail "cannot remove $project/$MANIFEST. $halfway"
  rmdir "$project/${MANIFEST%/*}" 2>/dev/null || true
  remove_empty_folders
}
