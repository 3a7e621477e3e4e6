#!/usr/bin/env bash
# The whole loop in under a minute: config → train → evaluate → compare → a picture. Usage: demo.sh FOLDER
set -euo pipefail
folder=${1:-demo}

step() {  # show a command, then run it
  printf '\n$ %s\n' "$*"
  "$@"
}

is_complete() { rlx wait "$1" --timeout 0 >/dev/null 2>&1; }

[ -f "$folder/rlx.toml" ] || step rlx init "$folder" --env CartPole-v1
cd "$folder"

is_complete cartpole_ppo_001 || step rlx train configs/cartpole.yaml --seeds 3 -s algo.total_timesteps=16384
is_complete slow_lr_001 || step rlx train configs/cartpole.yaml --seeds 3 -s algo.total_timesteps=16384 \
  -s algo.learning_rate=1e-5 -s run_name=slow_lr
step rlx ls
step rlx eval cartpole_ppo_001
step rlx compare slow_lr_001 cartpole_ppo_001
step rlx plot slow_lr_001 cartpole_ppo_001 --out curves.png
printf '\nThe runs are in %s/runs, the picture is %s/curves.png.\nnext: cd %s && rlx info cartpole_ppo_001\n' \
  "$folder" "$folder" "$folder"
