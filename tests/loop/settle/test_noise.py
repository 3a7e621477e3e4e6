"""Pools of seeds and replications, with real trainings."""

from __future__ import annotations

import json

import pytest

from rlx.runs import interim_looks
from tests.conftest import Project
from tests.loop.conftest import FAST, train_here, write_config

pytestmark = pytest.mark.slow


def test_a_config_goes_on_with_its_run_and_a_pool_says_what_it_can_find(hills: Project) -> None:
    config = write_config(hills, "base", stride=FAST)
    train_here(hills, config, range(9))
    done = hills.rlx("noise", config, "--json")
    data = json.loads(done.stdout)
    assert "configs/base.yaml: continues base_001" in done.stderr
    assert (data["run"], data["n"], data["trained"]) == ("base_001", 10, 1)
    assert data["random"] < 40 < data["mean"]
    assert data["costs"]["10"]["seeds"] == 10
    assert data["costs"]["24"]["seeds"] == 24 + 14
    assert data["costs"]["24"]["cpu_seconds"] > data["costs"]["10"]["cpu_seconds"] > 0
    assert {one["seeds"] for one in data["detects"]} <= {10, 16, 24, None}
    text = hills.rlx("noise", "base_001").stdout
    assert "0 trained now" in text
    assert "failing: " in text
    assert text.splitlines()[-1] == "next: rlx noise base_001 --aa"


def test_the_same_config_on_fresh_seeds_goes_the_whole_way_of_a_candidate(hills: Project) -> None:
    config = write_config(hills, "base", stride=FAST)
    train_here(hills, config, range(10))
    data = json.loads(hills.rlx("noise", config, "--aa", "--json").stdout)["aa"]
    assert data["verdict"] != "invalid"
    assert data["is_alarm"] == (data["verdict"] != "inconclusive")
    fresh = [seed.number for seed in hills.run("base_aa_001").seeds]
    assert fresh[:3] == [500, 501, 502]
    taken = interim_looks.read(hills.root)
    assert taken[0].seeds == 3
    assert taken[0].is_replication
    again = json.loads(hills.rlx("noise", config, "--aa", "--json").stdout)["aa"]
    assert again["run"] == "base_aa_002"
    assert hills.run("base_aa_002").seeds[0].number == fresh[-1] + 1
    assert again["asked"] == 2


def test_a_pool_says_which_change_costs_it_its_seeds_and_can_keep_them(hills: Project) -> None:
    hills.write("envs/pole.py", "from gymnasium.envs.classic_control import CartPoleEnv as Pole\n")
    env = {"id": "envs/pole.py:Pole", "wrappers": [{"name": "time_limit", "kwargs": {"max_steps": 100}}]}
    config = write_config(hills, "base", stride=FAST, env=env)
    hills.rlx("train", config, "--seeds", "2")
    hills.write("notebook_helper.py", "x = 1\n")
    assert "continues base_001" in hills.rlx("noise", config, "--seeds", "2").stderr
    hills.write("envs/pole.py", "from gymnasium.envs.classic_control import CartPoleEnv as Pole  # edited\n")
    kept = hills.rlx("noise", config, "--seeds", "3", "--reuse")
    assert "continues base_001" in kept.stderr
    assert "seeds of different code count together by --reuse" in kept.stdout
    refused = hills.rlx("noise", "base_001", "--seeds", "4", code=6).stderr
    assert "envs/pole.py" in refused
    assert "--reuse" in refused
    fresh = hills.rlx("noise", config, "--seeds", "2").stderr
    assert "note: base_001 is not continued" in fresh
    assert "envs/pole.py" in fresh
    assert "--reuse" in fresh


def test_one_seed_has_no_spread(hills: Project) -> None:
    assert "--seeds 10" in hills.rlx("noise", write_config(hills, "base", stride=FAST), "--seeds", "1", code=2).stderr
    assert hills.runs() == []
