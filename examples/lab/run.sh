#!/usr/bin/env bash
# A lab from the first command to the morning page, with six agent sessions.
# solve: CartPole with a learning rate that is too small. One idea is good, and is confirmed on fresh seeds.
# build: a grid world that the agent builds itself. No idea is better, and the page says so.
# Usage: bash run.sh solve|build FOLDER [PYTHON] [AGENT]     (minutes; AGENT: claude, codex or a command)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mission=$1 folder=$2 python=${3:-python}
agent=${4:-"$python $here/scripted_agent.py $mission"}
rlx() { echo "\$ rlx $*" >&2; "$python" -m rlx "$@"; }

# a person: the mission, the rules and the first candidate
if [ "$mission" = solve ]; then
  rlx lab new "$folder" --env CartPole-v1 --max-steps 200 --ladder 4/4
  cp "$here/slow_train.py" "$folder/candidate/train.py"
  goal="The pole falls after a few steps. Find settings or rewards with which the policy balances longer."
else
  rlx lab new "$folder" --template batched --kind build --ladder 16/16
  sed -i 's/3e-4/0.003/' "$folder/candidate/train.py"
  goal="Build a grid world of 7 by 7 in which a walker learns to reach its goal, and train the walker."
fi
cd "$folder"
printf '# Mission\n\n%s\n\nOne idea per attempt. Say what you expect before you know.\n' "$goal" > program.md
rlx lab approve --yes --by me

# the agent, alone
rlx lab run --agent "$agent" --iterations 6

# the next morning
rlx lab status
rlx lab log --tsv
rlx lab report
rlx study verify
