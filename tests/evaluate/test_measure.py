"""Measuring the checkpoints of a run and of a loose folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rlx.errors import CheckpointInvalid, EvidenceInvalid
from rlx.evaluate.measure import measure, protocol_for
from rlx.runs.reference import resolve
from rlx.runs.run import Run
from tests.evaluate.linear import GOOD, POOR, config, make_run, register, write_checkpoint


@pytest.fixture
def cartpole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    register(monkeypatch)
    return make_run(tmp_path, "cartpole", {0: GOOD, 3: POOR})


def test_every_seed_is_measured_beside_the_random_policy_and_kept(cartpole: Run, tmp_path: Path) -> None:
    reference = resolve("cartpole_001", tmp_path)
    found = list(measure(reference, protocol_for(reference, root=tmp_path, episodes=5)))
    assert [one.seed for one in found] == [0, 3]
    assert found[0].evaluation.mean == 500.0 > found[1].evaluation.mean > found[0].yardsticks["random"]["mean"]
    documents = {document["name"]: document for document in cartpole.evaluations()}
    assert list(documents) == ["random", "seed_0_latest", "seed_3_latest"]
    kept = documents["seed_0_latest"]
    assert (kept["seed"], kept["step"], kept["checkpoint"], kept["purpose"]) == (0, 1024, "latest", "report")
    assert kept["random"] == found[0].yardsticks["random"] == found[1].yardsticks["random"]
    assert "untrained" not in kept
    assert len(kept["episodes"]) == 5


def test_the_untrained_policy_is_measured_once_a_seed_under_the_same_protocol(cartpole: Run, tmp_path: Path) -> None:
    folder = cartpole.path / "seed_0/checkpoints"
    write_checkpoint(folder, "untrained", POOR, plain=config("cartpole"), step=0)
    reference = resolve("cartpole_001", tmp_path)
    first, other = measure(reference, protocol_for(reference, root=tmp_path, episodes=5))
    assert first.evaluation.mean == 500.0 > first.yardsticks["untrained"]["mean"] == other.evaluation.mean
    assert "untrained" not in other.yardsticks
    shutil.rmtree(folder / "untrained")
    (folder / "untrained").mkdir()
    (again, _) = measure(reference, protocol_for(reference, root=tmp_path, episodes=5))
    assert again.yardsticks == first.yardsticks


def test_a_folder_outside_any_run_is_measured_by_its_own_config_and_not_kept(cartpole: Run, tmp_path: Path) -> None:
    shutil.copytree(cartpole.path / "seed_0/checkpoints/latest", tmp_path / "mine")
    reference = resolve(str(tmp_path / "mine"), tmp_path)
    (found,) = measure(reference, protocol_for(reference, root=tmp_path, episodes=2))
    assert (found.file, found.seed, found.evaluation.mean) == (None, None, 500.0)
    assert cartpole.evaluations() == []


def test_another_runs_protocol_can_be_used(cartpole: Run, tmp_path: Path) -> None:
    make_run(tmp_path, "short", {0: GOOD}, env={"id": "CartPole-v1", "kwargs": {"max_episode_steps": 50}})
    reference = resolve("short_001", tmp_path)
    own = protocol_for(reference, root=tmp_path)
    theirs = protocol_for(reference, root=tmp_path, like=cartpole)
    assert (
        own.fingerprint()
        != theirs.fingerprint()
        == protocol_for(resolve("cartpole_001", tmp_path), root=tmp_path).fingerprint()
    )


def test_an_altered_checkpoint_is_refused_and_nothing_is_kept(cartpole: Run, tmp_path: Path) -> None:
    path = cartpole.path / "seed_0/checkpoints/latest/policy.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.unlink()
    path.write_bytes(content)
    reference = resolve("cartpole_001", tmp_path)
    with pytest.raises(CheckpointInvalid):
        list(measure(reference, protocol_for(reference, root=tmp_path, episodes=2)))
    assert cartpole.evaluations() == []


@pytest.mark.usefixtures("cartpole")
def test_a_policy_that_does_not_fit_the_environment_is_refused(tmp_path: Path) -> None:
    acrobot = make_run(tmp_path, "acrobot", {0: GOOD}, env={"id": "Acrobot-v1"})
    reference = resolve(acrobot.name, tmp_path)
    with pytest.raises(EvidenceInvalid, match="the policy does not fit Acrobot-v1"):
        list(measure(reference, protocol_for(reference, root=tmp_path, episodes=2)))
