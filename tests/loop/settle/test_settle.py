"""Settling pairs of runs with real trainings."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from rlx.runs import interim_looks
from rlx.runs.run import Run
from tests.conftest import Project, wait_until
from tests.loop.conftest import FAST, FROZEN, train_here, write_config

pytestmark = pytest.mark.slow


def settle(project: Project, *words: str, code: int = 0) -> dict[str, Any]:
    done = project.rlx("settle", *words, "--json", code=code)
    data: dict[str, Any] = json.loads(done.stdout)
    return {**data, "stderr": done.stderr}


def seeds_of(run: Run) -> list[int]:
    return [seed.number for seed in run.seeds]


def test_a_real_difference_is_decided_at_the_first_look_that_can(hills: Project) -> None:
    base, new = write_config(hills, "base", stride=FROZEN), write_config(hills, "new", stride=FAST)
    train_here(hills, base, range(9))
    train_here(hills, new, range(8))
    data = settle(hills, base, new)
    assert (data["verdict"], data["stopped"], data["look"]) == ("better", "decided", 10)
    assert data["seeds"] == {"baseline": 10, "candidate": 10}
    assert data["trained"] == {"baseline": 1, "candidate": 2}
    assert data["cpu_seconds"] > 0
    assert "leaning" in data["stderr"]
    assert "for the look at 10" in data["stderr"]
    assert [row.seeds for row in interim_looks.read(hills.root)] == [3, 6, 10]
    again = settle(hills, base, new)
    assert again["verdict"] == "better"
    assert again["trained"] == {"baseline": 0, "candidate": 0}
    assert "continues base_001" in again["stderr"]
    text = hills.rlx("settle", "base_001", "new_001").stdout
    assert text.startswith("verdict: better: +")
    assert "seeds: base_001 10 (0 trained now)" in text
    assert text.splitlines()[-1] == "next: rlx compare base_001 new_001"


def test_a_harmful_change_is_left_after_three_seeds(hills: Project) -> None:
    base, new = write_config(hills, "base", stride=FAST), write_config(hills, "new", stride=FROZEN)
    data = settle(hills, base, new)
    assert (data["verdict"], data["stopped"]) == ("inconclusive", "futile")
    assert data["seeds"] == {"baseline": 10, "candidate": 3}
    assert "futile" in data["line"]


def test_runs_are_extended_and_only_by_what_is_missing(hills: Project) -> None:
    train_here(hills, write_config(hills, "base", stride=FAST), range(8))
    train_here(hills, write_config(hills, "new", stride=FROZEN), range(2))
    data = settle(hills, "base_001", "new_001")
    assert data["trained"] == {"baseline": 2, "candidate": 1}
    assert seeds_of(hills.run("base_001")) == list(range(10))


def test_the_deadline_stops_the_round_and_the_next_call_goes_on(hills: Project) -> None:
    (hills.root / "slow").touch()
    base = write_config(hills, "base", stride=FAST, steps=9000)
    new = write_config(hills, "new", stride=FROZEN, steps=9000)
    data = settle(hills, base, new, "--deadline", "6s")
    assert (data["verdict"], data["stopped"]) == ("inconclusive", "deadline")
    states = {seed.status.state for seed in hills.run("base_001").seeds}
    assert "running" not in states
    assert states & {"interrupted", "prepared"}
    (hills.root / "slow").unlink()
    data = settle(hills, base, new)
    assert data["stopped"] == "futile"
    assert seeds_of(hills.run("base_001")) == list(range(10))
    assert hills.runs() == ["base_001", "new_001"]


def test_ctrl_c_stops_what_is_training_and_says_how_to_go_on(hills: Project) -> None:
    (hills.root / "slow").touch()
    base, new = write_config(hills, "base", stride=FAST), write_config(hills, "new", stride=FROZEN)
    attached = hills.start("settle", base, new)
    wait_until(lambda: "base_001" in hills.runs() and any(seed.rows for seed in hills.run("base_001").seeds))
    attached.send_signal(signal.SIGINT)
    _, errors = attached.communicate(timeout=60)
    assert attached.returncode == 130, errors
    assert f"rlx settle {base} {new}" in errors
    assert hills.run("base_001").status == "interrupted"


def test_seeds_that_the_machine_killed_are_resumed_and_crashes_count_as_the_rules_say(hills: Project) -> None:
    base, new = write_config(hills, "base", stride=FAST), write_config(hills, "new", stride=FROZEN)
    train_here(hills, base, range(6))
    hills.write("base_001.6.fails", "once MemoryError")
    hills.write("base_001.7.fails", "once ValueError")
    hills.write("base_001.8.fails", "ZeroDivisionError")
    hills.write("new_001.0.fails", "once ENOSPC")
    hills.write("new_001.1.fails", "ValueError")
    data = settle(hills, base, new)
    assert data["stopped"] == "futile"
    notes = "\n".join(data["notes"])
    assert "seed 8 of base_001 crashed (ZeroDivisionError: as ordered): a baseline seed is left out" in notes
    assert "seed 7 of base_001" not in notes
    assert "seed 1 of new_001 crashed (ValueError: as ordered): it scores" in notes
    assert data["seeds"] == {"baseline": 10, "candidate": 3}
    assert len(hills.run("base_001").seed(8).attempts) == 2
    assert len(hills.run("new_001").seed(0).attempts) == 2  # the disk was full
    assert "seed 0 of new_001" not in notes
    assert len(hills.run("new_001").seed(1).attempts) == 1
    assert seeds_of(hills.run("base_001")) == list(range(11))


def test_a_seed_that_never_gets_through_is_said_and_not_tried_for_ever(hills: Project) -> None:
    base, new = write_config(hills, "base", stride=FAST), write_config(hills, "new", stride=FROZEN)
    train_here(hills, base, range(10))
    hills.write("new_001.0.fails", "MemoryError")
    data = settle(hills, base, new, code=5)
    assert (data["stopped"], data["stuck"]["candidate"]) == ("stuck", [0])
    assert len(hills.run("new_001").seed(0).attempts) == 2


def test_runs_with_other_protocols_are_evaluated_under_the_baselines(hills: Project) -> None:
    base = write_config(hills, "base", stride=FAST)
    new = write_config(hills, "new", stride=FAST, env={"kwargs": {"sutton_barto_reward": True}})
    train_here(hills, base, range(10))
    data = settle(hills, base, new)
    assert data["verdict"] != "invalid"
    assert data["seeds"]["candidate"] >= 3
    assert "under the protocol of base_001" in data["stderr"]


def test_what_cannot_be_compared_is_refused_before_anything_is_trained(hills: Project) -> None:
    base = write_config(hills, "base", stride=FAST)
    done = hills.rlx("settle", base, write_config(hills, "same", stride=FAST), code=2)
    assert "only the seeds differ" in done.stderr
    assert "hint: rlx config diff configs/base.yaml configs/same.yaml" in done.stderr
    done = hills.rlx("settle", base, write_config(hills, "long", stride=0.5, steps=4000), code=2)
    assert "budgets differ" in done.stderr
    done = hills.rlx("settle", base, write_config(hills, "new", stride=0.5), "--max-seeds", "6", code=2)
    assert "--max-seeds 10" in done.stderr
    done = hills.rlx("settle", base, "nothing_001", code=3)
    assert "no run `nothing_001`" in done.stderr
    done = hills.rlx("settle", base, "configs/new.yaml", "--deadline", "soon", code=2)
    assert "not a time span" in done.stderr
    assert hills.runs() == []
    hills.write("runs/broken_001/metadata.json", "{half a file")
    done = hills.rlx("settle", base, "configs/same.yaml", code=2)
    assert "only the seeds differ" in done.stderr


def test_code_that_changed_since_is_never_mixed_in(hills: Project) -> None:
    hills.write("envs/pole.py", "from gymnasium.envs.classic_control import CartPoleEnv as Pole\n")
    env = {"id": "envs/pole.py:Pole", "wrappers": [{"name": "time_limit", "kwargs": {"max_steps": 100}}]}
    train_here(hills, write_config(hills, "base", stride=FAST, env=env), range(1))
    train_here(hills, write_config(hills, "new", stride=0.5, env=env), range(1))
    hills.write("envs/pole.py", "from gymnasium.envs.classic_control import CartPoleEnv as Pole  # edited\n")
    done = hills.rlx("settle", "base_001", "new_001", code=6)
    assert "base_001 cannot be trained further, because these changed since: the project's code (code " in done.stderr
    assert "rlx settle runs/base_001/config_snapshot.yaml runs/new_001/config_snapshot.yaml" in done.stderr
    assert seeds_of(hills.run("base_001")) == [0]
