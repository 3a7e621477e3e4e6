"""What is suggested: every command works on the run it is for."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from rlx.config import load
from rlx.diagnose.diagnose import diagnose
from rlx.diagnose.rules import all_rules
from rlx.diagnose.run_case import NOTHING, RETURN
from rlx.diagnose.run_rule import SuggestedChange
from rlx.diagnose.suggest import advise_script, suggest
from rlx.hosts.cli.parser import parser_of
from rlx.launch import launch
from tests.diagnose.cases import FIRES, LEARNS, ROWS, SOUND, case, noise

ENVS = {"sac": "Pendulum-v1", "td3": "Pendulum-v1", "tqc": "Pendulum-v1", "ddpg": "Pendulum-v1"}
ALGORITHMS = ("ppo", "a2c", "trpo", "dqn", "qrdqn", *ENVS)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_change_a_rule_asks_for_is_a_config_that_trains(algorithm: str, tmp_path: Path) -> None:
    env = ENVS.get(algorithm, "CartPole-v1")
    content = {"env": {"id": env}, "algo": {"name": algorithm, "total_timesteps": 20_000, "learning_rate": 1e-3}}
    snapshot = tmp_path / "config_snapshot.yaml"
    snapshot.write_text(yaml.safe_dump(load.document(load.parse(content))))
    some = replace(SOUND["ppo"], algorithm=algorithm, config=yaml.safe_load(snapshot.read_text()))
    changes = {shown: change for rule in all_rules() if not rule.algorithms or algorithm in rule.algorithms
               for change in rule.changes if (shown := str(change.apply(some))) != "None"}  # fmt: skip
    assert changes
    for change in changes.values():
        _launches(change, some.config, snapshot, tmp_path)


def _launches(change: SuggestedChange, config: object, snapshot: Path, root: Path) -> None:
    from rlx.diagnose.suggest import spell_value

    changed = change.apply(replace(SOUND["ppo"], config=config))  # type: ignore[arg-type]
    assert changed is not None
    overrides = [f"{key}={spell_value(value)}" for key, value in changed.items()]
    launch.check(load.load(snapshot, overrides=[*overrides, "backend=auto"]), root=root)


@pytest.mark.parametrize("name", [*FIRES, *SOUND])
def test_every_suggested_line_parses(name: str) -> None:
    some = {**FIRES, **SOUND}[name]
    found = diagnose(some)
    lines = [shlex.join(one.words) for one in suggest(some, found, snapshot="runs/own_001/config_snapshot.yaml")]
    lines += [line.partition(": ")[2] for one in found.findings for line in one.tries if ": rlx " in line]
    assert lines
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "rlx"
        parser_of(words[1]).parse_args(words[2:])


def test_a_run_that_trains_is_left_alone() -> None:
    running = SOUND["ppo, early in training"]
    commands = [one.words for one in suggest(running, diagnose(running), snapshot="x")]
    assert commands == [("rlx", "watch", "own_001")]


def test_the_first_finding_gives_the_first_training() -> None:
    some = FIRES["update_too_large"]
    first = suggest(some, diagnose(some), snapshot="runs/own_001/config_snapshot.yaml")[0]
    assert first.rule == "update_too_large"
    assert first.words[:5] == ("rlx", "train", "runs/own_001/config_snapshot.yaml", "-s", "algo.learning_rate=9e-05")


def test_a_seed_is_never_suggested_as_an_improvement() -> None:
    for some in FIRES.values():
        for one in suggest(some, diagnose(some), snapshot="x"):
            assert not any(word.startswith("seed") for word in one.words)


def test_a_scripts_run_is_not_resumed_or_evaluated_by_rlx() -> None:
    some = replace(FIRES["collapse_after_peak"], is_script=True)
    verbs = {one.words[1] for one in suggest(some, diagnose(some), snapshot="x")}
    assert verbs == {"plot"}


def test_a_script_that_still_rises_is_told_to_train_longer() -> None:
    rising = {RETURN: np.linspace(0, 60, ROWS) + noise(0, 0.5)}
    script = replace(case(rising, seeds=3, report=None, evaluations=NOTHING), is_script=True)
    (advice,) = advise_script(script, diagnose(script))
    assert advice.startswith("train longer")
    assert "120,000 steps" in advice
    assert advice.endswith("rlx compare own_001 NEW_RUN --budget-question --metric rollout/return_mean")
    level = replace(case({RETURN: LEARNS}, seeds=3), is_script=True)
    assert advise_script(level, diagnose(level)) == ()
    assert advise_script(replace(script, is_script=False), diagnose(script)) == ()


def test_the_commands_of_advice_are_suggested_also_for_a_script() -> None:
    saturated = FIRES["term_saturation"]
    some = replace(saturated, is_script=True)
    commands = [one.words for one in suggest(some, diagnose(some), snapshot="x")]
    assert commands[0] == ("rlx", "reflect", "own_001")
    stuck = FIRES["no_learning"]
    commands = [one.words for one in suggest(stuck, diagnose(stuck), snapshot="x")]
    assert ("rlx", "check", "env", "own_001") in commands
