"""What `RUN`, `RUN:checkpoint` and a checkpoint's path mean."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rlx import files
from rlx.errors import NotFound, UsageError
from rlx.runs.run import Run
from rlx.runs.run_reference import Reference, resolve
from tests.evaluate.linear import GOOD, make_run


@pytest.fixture
def cartpole(tmp_path: Path) -> Run:
    return make_run(tmp_path, "cartpole", {0: GOOD, 3: GOOD})


def test_a_run_means_every_seeds_default_checkpoint(cartpole: Run, tmp_path: Path) -> None:
    reference = resolve("cartpole_001", tmp_path)
    assert reference.run == cartpole
    paths = reference.checkpoints(default="latest")
    assert {seed: path.name for seed, path in paths.items()} == {0: "latest", 3: "latest"}
    assert list(reference.checkpoints(default="latest", seed=3)) == [3]


def test_a_checkpoint_can_be_named_after_a_colon(cartpole: Run, tmp_path: Path) -> None:
    reference = resolve("cartpole_001:best", tmp_path)
    assert reference.checkpoints(default="latest")[0] == cartpole.path / "seed_0/checkpoints/best"


def test_the_path_of_a_checkpoint_inside_a_run_knows_run_and_seed(cartpole: Run, tmp_path: Path) -> None:
    path = cartpole.path / "seed_3/checkpoints/best"
    reference = resolve(str(path), tmp_path)
    assert (reference.run, reference.seed, reference.checkpoint) == (cartpole, 3, "best")
    assert reference.checkpoints(default="latest") == {3: path}


def test_a_checkpoint_folder_outside_any_run_stands_alone(cartpole: Run, tmp_path: Path) -> None:
    shutil.copytree(cartpole.path / "seed_0/checkpoints/best", tmp_path / "mine")
    reference = resolve(str(tmp_path / "mine"), tmp_path)
    assert reference.run is None
    assert reference.checkpoints(default="latest") == {None: tmp_path / "mine"}
    with pytest.raises(UsageError, match="--seed 1"):
        reference.checkpoints(default="latest", seed=1)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("cartpole_007", "no run `cartpole_007`", "cartpole_001"),
        ("cartpole_007:best", "no run `cartpole_007`", "cartpole_001"),
        ("cartpole_001:", "not a run and a checkpoint", "RUN:best"),
        ("cartpole_001:step_5", "seed 0 of cartpole_001 has no checkpoint `step_5`", "it has: best, latest"),
    ],
)
@pytest.mark.usefixtures("cartpole")
def test_what_is_not_there_is_named_with_what_is(tmp_path: Path, text: str, message: str, hint: str) -> None:
    with pytest.raises((NotFound, UsageError), match=message) as caught:
        resolve(text, tmp_path).checkpoints(default="latest")
    assert hint in str(caught.value.hint)


def test_a_seed_the_run_does_not_have_is_named(cartpole: Run, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=f"{cartpole.name} has no seed 9"):
        resolve("cartpole_001", tmp_path).checkpoints(default="latest", seed=9)


def test_the_best_seed_is_that_of_the_highest_report(cartpole: Run) -> None:
    assert Reference(cartpole).best_seed() == 0
    folder = cartpole.path / "eval" / "abc"
    folder.mkdir(parents=True)
    for seed, score in {0: 5.0, 3: 9.0}.items():
        document = {"schema": 1, "seed": seed, "purpose": "report", "mean": score, "protocol": {}}
        files.write_json(folder / f"seed_{seed}_latest.json", document)
    assert Reference(Run(cartpole.path)).best_seed() == 3
