"""What a repository's own training really did: its settings and its steps must be what the candidate says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlx.launch.study_jobs import training_checks
from rlx.launch.study_jobs.training_checks import TrainingSide, effective_settings
from rlx.runs import loaded_modules
from rlx.runs.run import Seed
from rlx.study.task.task import Adapter
from tests.loop.mill import Mill

TRAIN = """\
import argparse, sys
import gymnasium

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--num-envs", type=int, default=2)
parser.add_argument("--set", nargs="+", default=[])
parser.add_argument("--append", action="append", default=[])
args = parser.parse_args()


class World(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 0, 0.0, False, False, {}


class Harder(World):
    def step(self, action):
        return super().step(action)


def limited():
    return gymnasium.wrappers.TimeLimit(Harder(), 10)


envs = gymnasium.vector.SyncVectorEnv([limited] * args.num_envs)
envs.reset()
for _ in range(5):
    envs.step(envs.action_space.sample())
"""


def trained(place: Path, *words: str, code: str = TRAIN) -> Seed:
    """Train as the command backend does; return the seed with its records."""
    folder = place / "runs" / "r_001" / "seed_0"
    folder.mkdir(parents=True)
    (place / "train.py").write_text(code)
    variables = loaded_modules.recorded(folder)
    subprocess.run(
        [sys.executable, str(place / "train.py"), "--seed", "0", *words], env={**os.environ, **variables}, check=True
    )
    return Seed(0, folder)


def side(name: str, *seeds: Seed, patch: bytes = b"", **stated: object) -> TrainingSide:
    return TrainingSide(name, seeds, {key.replace("_", "-"): value for key, value in stated.items()}, patch)


def adapter(override: str = "--{key} {value}", train: tuple[str, ...] = ("train.py", "{overrides}")) -> Adapter:
    return Adapter(kind="command", train=train, override=override)


def test_more_environments_are_more_data_also_below_wrappers_and_vectors(tmp_path: Path) -> None:
    ours = trained(tmp_path / "a")
    theirs = trained(tmp_path / "b", "--num-envs", "8")
    assert [loaded_modules.read(seed.folder).env_steps for seed in (ours, theirs)] == [10, 40]
    (problem,) = training_checks.problems(adapter(), side("baseline", ours), side("c001", theirs, num_envs=8))
    assert problem == "c001 trained on 40 environment steps, baseline on 10: more data is not an improvement"


def test_options_are_read_back_from_the_run_and_must_be_what_the_candidate_says(tmp_path: Path) -> None:
    ours = trained(tmp_path / "a")
    theirs = trained(tmp_path / "b", "--lr", "0.3")
    assert effective_settings(theirs)["lr"] == (0.3,)
    assert list(training_checks.problems(adapter(), side("baseline", ours), side("c001", theirs, lr=0.3))) == []
    (problem,) = training_checks.problems(adapter(), side("baseline", ours), side("c001", theirs, lr=0.2))
    assert problem == "c001 says lr = 0.2, but seed 0 trained with 0.3"


def test_a_repeated_flag_that_drops_a_change_is_named(tmp_path: Path) -> None:
    ours = trained(tmp_path / "a")
    dropped = trained(tmp_path / "b", "--set", "gain:1", "--set", "heat:2")
    found = list(
        training_checks.problems(
            adapter("--set {key}:{value}"), side("baseline", ours), side("c001", dropped, gain=1, heat=2)
        )
    )
    assert found == ["c001 says gain = 1, but its training dropped it (seed 0)"]
    kept = trained(tmp_path / "c", "--append", "gain:1", "--append", "heat:2")
    both = side("c001", kept, gain=1, heat=2)
    assert list(training_checks.problems(adapter("--append {key}:{value}"), side("baseline", ours), both)) == []


def test_a_setting_that_no_candidate_states_is_named(tmp_path: Path) -> None:
    ours = [trained(tmp_path / name) for name in "ab"]
    theirs = trained(tmp_path / "c", "--lr", "0.9")
    (problem,) = training_checks.problems(adapter(), side("baseline", *ours), side("c001", theirs))
    assert problem == "the trainings of c001 and baseline differ in `lr`, which no candidate states"
    code = side("c001", theirs, patch=b"other defaults")
    assert list(training_checks.problems(adapter(), side("baseline", *ours), code)) == []
    assert list(training_checks.notes(adapter(), side("baseline", *ours), code)) == [
        "its code also changes settings: `lr`"
    ]


def test_settings_that_the_program_wrote_count(tmp_path: Path) -> None:
    written = []
    for name, rate in (("a", 0.1), ("b", 0.1)):
        seed = trained(tmp_path / name, code="")
        (seed.folder / "output").mkdir()
        (seed.folder / "output" / "config.json").write_text(json.dumps({"agent": {"lr": rate}}))
        written.append(seed)
    ours, theirs = written
    stated = TrainingSide("c001", (theirs,), {"agent.lr": 0.5}, b"")
    (problem,) = training_checks.problems(adapter("{key}={value}"), side("baseline", ours), stated)
    assert problem == "c001 says agent.lr = 0.5, but seed 0 trained with 0.1"


@pytest.mark.parametrize(
    ("train", "is_refused"),
    [
        (("train.py", "--max_iterations", "{steps}"), True),
        (("train.py", "iterations={steps}"), True),
        (("train.py",), True),
        (("train.py", "--total-timesteps", "{steps}"), False),
        (("train.py", "total_frames={steps}"), False),
    ],
)
def test_what_multiplies_data_is_refused_where_steps_cannot_be_counted(
    tmp_path: Path, train: tuple[str, ...], is_refused: bool
) -> None:
    seed = trained(tmp_path, code="")
    found = list(
        training_checks.problems(adapter(train=train), side("baseline", seed), side("c001", seed, num_envs=256))
    )
    assert bool(found) == is_refused


GYM_TRAIN = """\
import argparse, json, pathlib
import gymnasium

parser = argparse.ArgumentParser()
parser.add_argument("seed", type=int)
parser.add_argument("out", type=pathlib.Path)
parser.add_argument("--gain", type=float, default=0.0)
parser.add_argument("--heat", type=int, default=1)
parser.add_argument("--how", default="")
args = parser.parse_args()
envs = gymnasium.make_vec("CartPole-v1", num_envs=args.heat, vectorization_mode="sync")
envs.reset(seed=args.seed)
for _ in range(10):
    envs.step(envs.action_space.sample())
with open(args.out / "log.jsonl", "a") as log:
    for step, success in ((1, args.gain / 2), (10, args.gain)):
        log.write(json.dumps({"step": step, "success": success}) + "\\n")
gain = args.gain if args.how != "lie" else 9.0
(args.out / "policy").write_text(f"{gain + args.heat + args.seed * 37 % 11 / 10},well,{args.seed},0")
"""


@pytest.mark.slow
def test_a_study_does_not_believe_a_candidate_that_only_collects_more_data(tmp_path: Path) -> None:
    from tests.loop.mill import EVAL

    mill = Mill.built(tmp_path / "mill", programs=(GYM_TRAIN, EVAL), describes=("adapter.override=--{key}={value}",))
    mill.types("study", "baseline")
    identity = mill.proposes(heat=4)
    mill.trains(identity)
    judged = mill.types("decide", identity)
    assert judged["verdict"] == "invalid"
    assert judged["objections"] == [
        f"{identity} trained on 40 environment steps, baseline on 10: more data is not an improvement"
    ]
    mill.types("study", "loop")
    identity = mill.proposes(gain=9)
    mill.trains(identity)
    assert mill.types("verdict", identity)["objections"] == []
