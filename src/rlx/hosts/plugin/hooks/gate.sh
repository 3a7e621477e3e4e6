#!/bin/sh
# Asks gate.py only where there may be a study: in other repositories it ends here, without starting an interpreter.
# Where no interpreter runs, it blocks (exit 2) inside an approved study and is silent elsewhere.
call=$(cat)
here=$(pwd -P)
place=""

find_study() { # sets $place to the nearest folder upwards from $1 that has an active study
  place=$1
  while [ -n "$place" ]; do
    [ -f "$place/.rlx/active.json" ] && return 0
    place=${place%/*}
  done
  return 1
}

edits_elsewhere() { # sets $place where the edited file, and not this folder, is inside a study; unsure is yes
  path=$(printf '%.2000s' "$call") # the path stands before the text, which may be long
  case $path in
    *'"file_path"'*'"'*'"'*) path=${path#*'"file_path"'} ;;
    *'"notebook_path"'*'"'*'"'*) path=${path#*'"notebook_path"'} ;;
    *) return 0 ;;
  esac
  path=${path#*'"'}
  path=${path%%'"'*}
  case $path in
    *\\*) return 0 ;;
    /*) find_study "${path%/*}" ;;
    *) return 0 ;;
  esac
}

if ! find_study "$here" && ! find_study "${CLAUDE_PROJECT_DIR:-}"; then
  case $call in
    *'"file_path"'* | *'"notebook_path"'*) edits_elsewhere || exit 0 ;;
    # a command, or a patch, reaches a study elsewhere only by a path
    *'"command"'*/*.rlx* | *'"command"'*/*train* | *'"command"'*train*/* | *'"command"'*/*approve*) ;;
    *) exit 0 ;;
  esac
fi

for python in /usr/bin/python3 python3; do # a shim of a version switcher costs more than the interpreter itself
  command -v "$python" >/dev/null 2>&1 || continue
  printf '%s' "$call" | "$python" -I -S "${0%/*}/gate.py" && exit 0
done
for study in "$place"/.rlx/tasks/*/studies/*; do
  [ -n "$place" ] || break
  if grep -qs '"approved": *true' "$study/hook.json" \
    || { [ ! -e "$study/hook.json" ] && grep -qs 'event[^a-z]*approved' "$study/ledger.jsonl"; }; then
    echo "rlx's hook cannot run (is python3 there?), so nothing passes inside an approved study. Run: rlx doctor" >&2
    exit 2
  fi
done
exit 0
