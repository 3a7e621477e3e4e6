#!/usr/bin/env bash
# Improve a repository that does not know rlx, under a contract: first a person's commands, then an agent's.
# Usage: bash govern.sh FOLDER [PYTHON]     (two or three minutes; PYTHON has numpy, gymnasium, pyyaml, tensorboard and rlx)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
lab=$1 python=${2:-python}
rlx() { echo "\$ rlx $*" >&2; "$python" -m rlx "$@"; }
field() { "$python" -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }

"$python" -c "import tensorboard" 2>/dev/null || {
  echo "this repository logs with TensorBoard, which is not installed. hint: $python -m pip install tensorboard" >&2
  exit 3
}
mkdir -p "$lab"
cp -r "$here"/{configs,src,train.py,eval.py,pyproject.toml} "$lab"
cd "$lab"
git init -q && git add -A && git -c user.name=me -c user.email=me@example.org commit -qm "Start"

# a person sets training, evaluation, scope and budget
rlx task new courier --mission "Reach the door more often." --path src \
  --train "$python train.py --seed {seed} --out {out} --steps {steps} {overrides}" --steps 400000 \
  --eval "$python eval.py --checkpoint {checkpoint} --episodes {episodes} --seed {episode_seed} --out {result}" \
  --metrics tensorboard:{out}/tb --name return=train/return --checkpoint "{out}/policy.npz" \
  --result jsonl:{result} --result-name success --override "{key}={value}" \
  --surface reward=src/courier/reward.py --surface evaluator=eval.py,src/courier/env.py,src/courier/world.py
rlx study new doors --metric success:max --key "learning.*" --key "reward.*" --seeds 50 --hours 1 \
  -s budget.per_seed_minutes=1 -s evaluation.confirm_episodes=100
rlx check contract doors
rlx study rehearse
rlx study approve --yes --by me
rlx study baseline

# an agent reads `next`, proposes one change, and types the commands that rlx prints
rlx next
cat > candidate.json <<'JSON'
{
  "kind": "reward tuning",
  "hypothesis": "cheaper effort lets it go around the pond, and fewer worlds per member pay for more generations",
  "predicts": 0.2,
  "changes": {"reward.effort": 0.1, "learning.worlds": 2},
  "records": {"reason": "effort costs as much as progress pays; the metric is success, not the return"}
}
JSON
rlx propose --file candidate.json
plan=$(rlx check candidate c001 --json | field plan)
run=$(rlx launch c001 --phase trial --plan "$plan" --json | field run)
rlx wait "$run" --timeout 300
rlx verdict c001
rlx decide c001
rlx try c001
# the next idea in one call, from the proposal to the decision
cat > candidate.json <<'JSON'
{
  "kind": "hyperparameter",
  "hypothesis": "smaller steps of the search are steadier",
  "predicts": 0.1,
  "changes": {"learning.rate": 0.001}
}
JSON
rlx try --file candidate.json
# the claim of the best idea: both sides on fresh seeds
[ "$(rlx next --json | field head)" = baseline ] || rlx try --claim

# both: attempts, cost and results; then every number recomputed from its files
rlx study log
rlx study report
rlx study verify
rlx study audit --anchor
