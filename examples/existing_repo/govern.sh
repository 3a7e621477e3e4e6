#!/usr/bin/env bash
# A repository that has never heard of rlx, improved under a contract: what a person and an agent would type.
# Usage: bash govern.sh FOLDER [PYTHON]     (a few minutes; PYTHON has numpy, gymnasium, pyyaml, tensorboard and rlx)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
lab=$1 python=${2:-python}
mkdir -p "$lab"
cp -r "$here"/{configs,src,train.py,eval.py,pyproject.toml} "$lab"
cd "$lab"
git init -q && git add -A && git -c user.name=me -c user.email=me@example.org commit -qm "The courier as it is"
rlx() { echo "\$ rlx $*" >&2; "$python" -m rlx "$@"; }

rlx task new courier --mission "Reach the door more often." --path src \
  --train "$python train.py --seed {seed} --out {out} --steps {steps} {overrides}" --steps 300000 \
  --eval "$python eval.py --checkpoint {checkpoint} --episodes {episodes} --seed {episode_seed} --out {result}" \
  --metrics tensorboard:{out}/tb --name return=train/return --checkpoint "{out}/policy.npz" \
  --result jsonl:{result} --result-name success --override "{key}={value}" \
  --surface reward=src/courier/reward.py --surface evaluator=eval.py,src/courier/env.py,src/courier/world.py
rlx study new doors --metric success:max --key "learning.*" --key "reward.*" --seeds 60 --hours 1 \
  -s budget.per_seed_minutes=2 -s evaluation.confirm_episodes=100
rlx study rehearse
rlx study approve --yes --by me
rlx study baseline
rlx next
rlx propose --kind hyperparameter --hypothesis "larger steps learn faster" -s learning.rate=0.1
plan=$(rlx check candidate c001 --json | "$python" -c 'import json, sys; print(json.load(sys.stdin)["plan"])')
run=$(rlx launch c001 --phase trial --plan "$plan" --json | "$python" -c 'import json, sys; print(json.load(sys.stdin)["run"])')
rlx wait "$run" --timeout 300
rlx verdict c001
rlx decide c001
rlx study loop
rlx study report
rlx study verify
