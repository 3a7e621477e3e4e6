"""A rehearsal that fails says where, shows what the job said, and leaves a way to read the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlx.config.schema import Source
from rlx.errors import UsageError
from rlx.hosts.cli.study import rehearse
from rlx.launch.git import worktree
from rlx.loop.study.describe_task import new_task
from rlx.loop.study.new_study import Wishes, new_study
from rlx.runs.run import Run
from rlx.runs.summary import costs
from rlx.study.study_folder import Study, find_study
from rlx.study.task.infer_task import Commands, source_of
from rlx.study.task.task import PathsAndKeys
from tests.loop.told import git, repository, typed

TRAIN = """import pathlib, sys
out = pathlib.Path(sys.argv[2])
print("loading the robot")
{broken}
(out / "log.jsonl").write_text('{{"step": 1, "return": 2.0}}\\n')
(out / "net").write_text("weights")
"""
EVAL = """import sys
print("opening the arena")
{broken}
open(sys.argv[3], "w").write('{{"success": 0.5}}')
"""
RAISES = "raise RuntimeError('the arm is not calibrated')"


ARM = """import gymnasium
from gymnasium import spaces


class Arm(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (1,))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        raise RuntimeError('the arm is not calibrated')
"""


CART = """import gymnasium
from gymnasium import spaces


def paid():
    return {"alive": 1.0}


class Cart(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (1,))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observation_space.sample() * 0, {}

    def step(self, action):
        self.steps += 1
        terms = paid()
        return self.observation_space.sample() * 0, 1.0, False, self.steps > 3, {"reward_terms": terms}
"""


def robot(
    root: Path, *, train: str = "", evaluates: str = "", result: Source | None = None, steps: int | None = None
) -> Study:
    """Return a study of a repository of its own, whose programs may be broken."""
    repository(root)
    broken(root, train=train, evaluates=evaluates)
    commands = Commands(
        train=("python3", "train.py", "{seed}", "{out}", *(["{steps}"] if steps else []), "{overrides}"),
        steps=steps,
        eval=("python3", "evaluate.py", "{checkpoint}", "{episode_seed}", "{result}"),
        metrics=source_of("jsonl:{out}/log.jsonl", {"return": "return"}),
        result=result or source_of("jsonl:{result}", {"success": "success"}),
        checkpoint="{out}/net", mission="hold more", surfaces={"hyperparameters": PathsAndKeys(keys=("lr",))},
    )  # fmt: skip
    new_task(root, "arm", commands=commands)
    new_study(root, "hold", Wishes(metric="success", seeds=60, hours=1.0), task="arm")
    return find_study(root)


def broken(root: Path, *, train: str = "", evaluates: str = "") -> None:
    (root / "train.py").write_text(TRAIN.format(broken=train))
    (root / "evaluate.py").write_text(EVAL.format(broken=evaluates))
    git(root, "add", "-A")
    git(root, "commit", "-qm", "the programs")


def failed(told: dict[str, Any]) -> dict[str, Any]:
    return next(one for one in told["checks"] if not one["ok"])


def test_a_training_that_fails_is_shown_by_the_end_of_its_own_log(tmp_path: Path) -> None:
    study = robot(tmp_path / "lab", train=RAISES)
    told = typed(study.root, "rlx study rehearse", code=1)
    assert failed(told)["name"] == "training"
    assert told["tail"][0] == "loading the robot"
    assert told["tail"][-1] == "RuntimeError: the arm is not calibrated"
    assert told["reads"] == "rlx logs hold_rehearsal_001"
    assert "calibrated" in typed(study.root, told["reads"])["logs"]["seed_0"]
    shown = rehearse.render({**told, "exit_code": 1})
    assert shown.startswith("not rehearsed: training failed (contract → disk → ")
    assert "→ [training] → evaluation → metric → decision → revert)" in shown
    assert "  | RuntimeError: the arm is not calibrated" in shown
    assert "whole log: rlx logs hold_rehearsal_001" in shown
    after = typed(study.root, "rlx next --full")
    assert after["command"] == told["command"] == "rlx logs hold_rehearsal_001"
    assert "the arm is not calibrated" in after["why"]
    assert after["also"][0]["command"] == "rlx study rehearse hold"


def test_what_an_evaluation_printed_is_kept_where_it_fails_and_the_next_walk_starts_clean(tmp_path: Path) -> None:
    study = robot(tmp_path / "lab", evaluates=RAISES)
    told = typed(study.root, "rlx study rehearse", code=1)
    assert failed(told)["name"] == "evaluation"
    assert told["tail"][0] == "opening the arena"
    kept = study.root / told["log"]
    assert told["reads"] == f"cat {told['log']}"
    assert "calibrated" in kept.read_text()
    broken(study.root, evaluates="")
    typed(study.root, "rlx task refresh arm")
    typed(study.root, "rlx study amend -s baseline.commit=" + worktree.head_commit(study.root))
    told = typed(study.root, "rlx study rehearse")
    assert told["ok"], "what the first one left does not stand in the way of another commit"
    assert not kept.exists()
    assert not study.worktree("rehearsal").exists()
    assert (study.root / "runs" / "hold_rehearsal_001" / "logs").is_dir(), "its run is kept"


@pytest.mark.parametrize("figure", ["fixed"])
def test_a_figure_that_the_evaluation_does_not_report_is_said_with_those_it_does(tmp_path: Path, figure: str) -> None:
    study = robot(tmp_path / "lab")
    path = study.root / "evaluate.py"
    path.write_text(path.read_text().replace('"success"', f'"{figure}"'))
    git(study.root, "commit", "-qam", "another figure")
    typed(study.root, "rlx task refresh arm")
    typed(study.root, "rlx study amend -s baseline.commit=" + worktree.head_commit(study.root))
    told = typed(study.root, "rlx study rehearse", code=1)
    assert figure in failed(told)["says"]
    assert "rlx study amend hold -s metric.name=NAME" in failed(told)["hint"]
    assert told["tail"] == ["opening the arena"]


def test_a_guarded_figure_that_the_evaluation_does_not_report_fails_the_rehearsal(tmp_path: Path) -> None:
    study = robot(tmp_path / "lab", evaluates="print({'success': 0.5, 'energy': 2.0})", result=source_of("stdout"))
    typed(study.root, """rlx study amend -s 'guardrails=[{"expression": "-enrgy", "margin": 2}]'""")
    told = typed(study.root, "rlx study rehearse", code=1)
    assert failed(told)["name"] == "metric"
    assert "enrgy" in failed(told)["says"]
    typed(study.root, told["command"])
    told = typed(study.root, "rlx study rehearse")
    assert next(one for one in told["checks"] if one["name"] == "metric")["says"] == "success 0.5, energy 2"


def test_a_figure_that_nobody_named_can_be_guarded_by_what_the_refusal_says(tmp_path: Path) -> None:
    study = robot(tmp_path / "lab", evaluates="")
    path = study.root / "evaluate.py"
    path.write_text(path.read_text().replace('"success": 0.5', '"success": 0.5, "energy": 2.0'))
    git(study.root, "commit", "-qam", "measures energy")
    typed(study.root, "rlx task refresh arm")
    guard = """'guardrails=[{"expression": "-energy", "margin": 2}]'"""
    told = typed(study.root, f"rlx study amend -s {guard} -s baseline.commit={worktree.head_commit(study.root)}")
    says = next(one for point in told["points"] for one in point["problems"] if "energy" in one)
    assert "rlx task refresh arm -s adapter.result.names.energy=energy" in says
    with pytest.raises(UsageError) as refused:
        new_study(study.root, "other", Wishes(metric="success", guards=("-energy:2",), hours=1.0), task="arm")
    typed(study.root, str(refused.value.hint))
    while (told := typed(study.root, "rlx next --full"))["action"] == "amend":
        typed(study.root, told["command"])
    assert typed(study.root, "rlx study rehearse")["ok"]


def test_a_file_that_lies_here_and_is_not_committed_is_told_from_one_that_is_nowhere(tmp_path: Path) -> None:
    study = robot(tmp_path / "lab", train="open('data/terrain')")
    assert "committed" not in failed(typed(study.root, "rlx study rehearse", code=1)).get("hint", "")
    (study.root / "data").mkdir()
    (study.root / "data" / "terrain").write_text("rough")
    hint = failed(typed(study.root, "rlx study rehearse", code=1))["hint"]
    assert hint.startswith("jobs have only committed files, and data/terrain is not committed: commit it")


def test_a_file_that_jobs_may_not_read_is_told_with_what_lets_them(tmp_path: Path) -> None:
    outside = tmp_path / "sets" / "terrain"
    outside.parent.mkdir()
    outside.write_text("rough")
    study = robot(tmp_path / "lab", train=f"open({str(outside)!r})")
    told = typed(study.root, "rlx study rehearse", code=1)
    assert f"{outside.parent}" in failed(told)["hint"]
    typed(study.root, told["command"])
    assert typed(study.root, "rlx study rehearse")["ok"]


def test_a_rehearsal_tells_that_a_whole_training_could_take_longer_than_a_seed_may(tmp_path: Path) -> None:
    study = robot(tmp_path / "lab", train="import time; time.sleep(1.5)")
    typed(study.root, "rlx study amend -s budget.per_seed_minutes=0.02")
    told = typed(study.root, "rlx study rehearse")
    says = next(one for one in told["checks"] if one["name"] == "training")["says"]
    assert "rlx ends a seed after 1 s (rlx study amend hold -s budget.per_seed_minutes=1)" in says
    typed(study.root, "rlx study amend hold -s budget.per_seed_minutes=1")
    told = typed(study.root, "rlx study rehearse")
    assert "ends a seed" not in next(one for one in told["checks"] if one["name"] == "training")["says"]


COUNTS_FROM_0 = """(out / "log.jsonl").write_text('{"step": 0, "return": 2.0}')
(out / "net").write_text("weights")
sys.exit()"""


def test_what_a_seed_takes_is_told_by_the_steps_that_the_rehearsal_asked_for(tmp_path: Path) -> None:
    study = robot(tmp_path / "lab", train=COUNTS_FROM_0, steps=10)
    shown = typed(study.root, "rlx study show")["affords"][0]
    assert "not measured yet" in shown
    told = typed(study.root, "rlx study rehearse")
    assert "1 step in " in next(one for one in told["checks"] if one["name"] == "training")["says"]
    (cost,) = costs(Run(study.root / "runs" / "hold_rehearsal_001")).values()
    assert study.state().rehearsal["seed_seconds"] == pytest.approx(10 * cost.seconds)
    shown = typed(study.root, "rlx study show")["affords"][0]
    assert f"at the speed of the rehearsal, {10 * cost.seconds:.3g} s per seed" in shown


@pytest.mark.parametrize("explores", [True, False])
def test_a_policy_is_played_as_the_contract_says_and_not_as_the_config_does(tmp_path: Path, explores: bool) -> None:
    root = repository(tmp_path / "lab")
    with (root / "configs" / "pole.yaml").open("a") as config:
        config.write(f"eval: {{deterministic: {json.dumps(explores)}}}\n")
    git(root, "commit", "-qam", "how it is played")
    new_study(root, "hold", Wishes(seeds=60, hours=1.0), config=root / "configs" / "pole.yaml")
    typed(root, f"rlx study amend hold -s evaluation.deterministic={json.dumps(not explores)}")
    assert typed(root, "rlx study rehearse")["ok"]
    (evidence,) = (find_study(root).evidence / "smoke").glob("*.json")
    assert json.loads(evidence.read_text())["protocol"]["deterministic"] is not explores


def test_an_environment_that_raises_is_shown_by_its_traceback(tmp_path: Path) -> None:
    root = repository(tmp_path / "lab")
    (root / "envs").mkdir()
    (root / "envs" / "arm.py").write_text(ARM)
    (root / "configs" / "arm.yaml").write_text("env: {id: 'envs/arm.py:Arm'}\nalgo: {name: ppo, total_timesteps: 64}\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "an arm")
    new_study(root, "hold", Wishes(seeds=60, hours=1.0), config=root / "configs" / "arm.yaml")
    told = typed(root, "rlx study rehearse", code=1)
    assert failed(told)["name"] == "training"
    assert told["tail"][-1] == "RuntimeError: the arm is not calibrated (envs/arm.py:10)"
    assert told["reads"] == "rlx logs hold_rehearsal_001"
    (root / "envs" / "arm.py").write_text("import nothing_there\n" + ARM)
    git(root, "commit", "-qam", "worse")
    typed(root, "rlx task refresh arm")
    typed(root, f"rlx study amend -s baseline.commit={worktree.head_commit(root)}")
    told = typed(root, "rlx study rehearse", code=1)
    assert failed(told)["name"] == "worktree"
    assert "nothing_there" in failed(told)["says"]
    assert "baseline.commit" in failed(told)["hint"]


def test_a_guardrail_over_a_figure_that_the_evaluation_does_not_report_fails_and_says_the_one_that_was_meant(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "lab")
    (root / "envs").mkdir()
    (root / "envs" / "cart.py").write_text(CART)
    (root / "configs" / "cart.yaml").write_text(
        "env: {id: 'envs/cart.py:Cart'}\nalgo: {name: ppo, total_timesteps: 64, rollout_steps: 8, batch_size: 8}\n"
    )
    git(root, "add", "-A")
    git(root, "commit", "-qm", "a cart")
    wishes = Wishes(seeds=60, hours=1.0, guards=("-length_men:2", "alive"))
    assert not new_study(root, "hold", wishes, config=root / "configs" / "cart.yaml")["missing"]
    told = typed(root, "rlx study rehearse", code=1)
    assert failed(told)["name"] == "metric"
    assert "guardrail `-length_men`" in failed(told)["says"]
    command = failed(told)["hint"]
    assert command.startswith("rlx study amend hold -s ")
    typed(root, command)
    assert typed(root, "rlx study rehearse")["ok"]


def test_a_rehearsal_takes_a_longer_training_if_a_short_one_ends_before_its_first_row(tmp_path: Path) -> None:
    study = robot(tmp_path / "lab", train="if int(sys.argv[3]) < 30: sys.exit(0)", steps=100)
    told = typed(study.root, "rlx study rehearse")
    assert told["ok"]
    training = next(check for check in told["checks"] if check["name"] == "training")
    assert training["says"].startswith("40 steps in ")
    assert (study.root / "runs" / "hold_rehearsal_003").is_dir(), "2, 10 and 40 steps"


def test_a_training_that_fails_is_not_tried_longer(tmp_path: Path) -> None:
    study = robot(tmp_path / "lab", train=RAISES, steps=100)
    typed(study.root, "rlx study rehearse", code=1)
    assert not (study.root / "runs" / "hold_rehearsal_002").exists()
