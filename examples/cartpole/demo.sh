#!/usr/bin/env bash
# The whole loop in under a minute: config → train → evaluate → compare → a picture. Usage: demo.sh FOLDER
set -euo pipefail
folder=${1:-demo}

step() {  # print a command, then run it
  printf '\n$ %s\n' "$*"
  "$@"
}

is_complete() { rlx wait "$1" --timeout 0 >/dev/null 2>&1; }

[ -f "$folder/rlx.toml" ] || step rlx init "$folder" --env CartPole-v1
cd "$folder"

is_complete quick_001 || step rlx train configs/cartpole.yaml --seeds 3 -s run_name=quick \
  -s algo.total_timesteps=16384 -s eval.every=8192 -s checkpoint.save_every=8192
is_complete slow_001 || step rlx train configs/cartpole.yaml --seeds 3 -s run_name=slow -s algo.learning_rate=1e-5 \
  -s algo.total_timesteps=16384 -s eval.every=8192 -s checkpoint.save_every=8192
step rlx ls
step rlx eval quick_001
step rlx compare slow_001 quick_001
step rlx plot slow_001 quick_001 --out curves.png

cat <<EOF

Done: two runs of three seeds each in $folder/runs, evaluated and compared; the picture is $folder/curves.png.
next: . .venv/bin/activate && cd $folder && rlx info quick_001
EOF
