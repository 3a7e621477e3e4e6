#!/usr/bin/env bash
# A study of an rlx config from the first command to the last: an idea that works, one that fails, and the evidence.
# Usage: bash study.sh FOLDER [PYTHON]     (about two minutes)
set -euo pipefail
lab=$1 python=${2:-python}
rlx() { echo "\$ rlx $*" >&2; "$python" -m rlx "$@"; }
field() { "$python" -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }

mkdir -p "$lab/configs"
cd "$lab"
touch rlx.toml
cat > configs/pole.yaml <<'YAML'
env: {id: CartPole-v1, num_envs: 8}
algo: {name: ppo, total_timesteps: 6144, rollout_steps: 32, batch_size: 256, update_epochs: 20, learning_rate: 0.00005,
       gamma: 0.98, gae_lambda: 0.8}
policy: {hidden_sizes: [32, 32]}
eval: {every: 6144, episodes: 2}
YAML
printf '/runs/\n/.rlx/\n' > .gitignore
git init -q && git add -A && git -c user.name=me -c user.email=me@example.org commit -qm "Start"

# a person
rlx task new pole --config configs/pole.yaml --mission "Keep the pole up for longer, with the same training time."
rlx study new faster --task pole --seeds 50 --hours 1 -s budget.per_seed_minutes=1 --guard "length_mean:5"
rlx study show
rlx check contract faster
rlx study rehearse
rlx study approve --yes --by me
rlx study baseline

# an agent
rlx next
rlx propose --kind hyperparameter --hypothesis "a larger step learns faster" --predicts 50 -s algo.learning_rate=0.002
plan=$(rlx check candidate c001 --json | field plan)
run=$(rlx launch c001 --phase trial --plan "$plan" --json | field run)
rlx wait "$run" --timeout 300
rlx verdict c001
rlx decide c001
rlx try c001
# the next idea in one call, from the proposal to the decision
rlx try --kind hyperparameter --hypothesis "an even larger step learns even faster" --predicts 50 -s algo.learning_rate=0.2
# the claim of the best idea: both sides on fresh seeds
[ "$(rlx next --json | field head)" = baseline ] || rlx try --claim

# both
rlx status
rlx study log
rlx study report
rlx study verify
rlx study audit --anchor
