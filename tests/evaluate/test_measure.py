"""Measuring the checkpoints of a run and of a loose folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rlx import files
from rlx.errors import CheckpointInvalid, EvidenceInvalid, NotFound
from rlx.evaluate.measure import measure, protocol_for
from rlx.runs import store
from rlx.runs.run import Run
from rlx.runs.run_reference import resolve
from tests.evaluate.linear import GOOD, POOR, config, make_run, register, write_checkpoint


@pytest.fixture
def cartpole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    register(monkeypatch)
    return make_run(tmp_path, "cartpole", {0: GOOD, 3: POOR})


def test_every_seed_is_measured_beside_the_random_policy_and_kept(cartpole: Run, tmp_path: Path) -> None:
    reference = resolve("cartpole_001", tmp_path)
    found = list(measure(reference, protocol_for(reference, root=tmp_path, episodes=5)))
    assert [one.seed for one in found] == [0, 3]
    assert found[0].figures["mean"] == 500.0 > found[1].figures["mean"] > found[0].reference_scores["random"]["mean"]
    documents = {document["name"]: document for document in cartpole.evaluations()}
    assert list(documents) == ["random", "seed_0_latest", "seed_3_latest"]
    kept = documents["seed_0_latest"]
    assert (kept["seed"], kept["step"], kept["checkpoint"], kept["purpose"]) == (0, 1024, "latest", "report")
    assert kept["random"] == found[0].reference_scores["random"] == found[1].reference_scores["random"]
    assert "untrained" not in kept
    assert len(kept["episodes"]) == 5


def test_every_training_seed_plays_episodes_of_its_own_under_one_fingerprint(cartpole: Run, tmp_path: Path) -> None:
    reference = resolve("cartpole_001", tmp_path)
    protocol = protocol_for(reference, root=tmp_path, episodes=5)
    found = list(measure(reference, protocol))
    played = {document["seed"]: {row["seed"] for row in document["episodes"]}
              for document in cartpole.evaluations() if "seed" in document}  # fmt: skip
    assert played == {0: set(range(200_000, 200_005)), 3: set(range(200_015, 200_020))}
    assert len({one.fingerprint for one in found}) == 1


def test_the_untrained_policy_is_measured_once_a_seed_under_the_same_protocol(cartpole: Run, tmp_path: Path) -> None:
    folder = cartpole.path / "seed_0/checkpoints"
    write_checkpoint(folder, "untrained", POOR, plain=config("cartpole"), step=0)
    reference = resolve("cartpole_001", tmp_path)
    first, other = measure(reference, protocol_for(reference, root=tmp_path, episodes=5))
    assert first.figures["mean"] == 500.0 > first.reference_scores["untrained"]["mean"] > 0
    assert "untrained" not in other.reference_scores
    (kept,) = [one for one in cartpole.evaluations() if one["name"] == "seed_0_untrained"]
    assert (kept["seed"], kept["step"]) == (0, 0)
    shutil.rmtree(folder / "untrained")
    (folder / "untrained").mkdir()
    (again, _) = measure(reference, protocol_for(reference, root=tmp_path, episodes=5), is_again=True)
    assert again.reference_scores == first.reference_scores


def test_a_folder_outside_any_run_is_measured_by_its_own_config_and_not_kept(cartpole: Run, tmp_path: Path) -> None:
    shutil.copytree(cartpole.path / "seed_0/checkpoints/latest", tmp_path / "mine")
    reference = resolve(str(tmp_path / "mine"), tmp_path)
    (found,) = measure(reference, protocol_for(reference, root=tmp_path, episodes=2))
    assert (found.file, found.seed, found.figures["mean"]) == (None, None, 500.0)
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


def test_what_is_kept_is_not_measured_again_unless_asked_or_other(cartpole: Run, tmp_path: Path) -> None:
    reference = resolve("cartpole_001", tmp_path)
    protocol = protocol_for(reference, root=tmp_path, episodes=3)
    first = list(measure(reference, protocol))
    again = list(measure(reference, protocol))
    assert [one.is_stored for one in (*first, *again)] == [False, False, True, True]
    assert [one.figures for one in again] == [one.figures for one in first]
    assert [one.reference_scores for one in again] == [one.reference_scores for one in first]
    assert not any(one.is_stored for one in measure(reference, protocol, is_again=True))
    write_checkpoint(cartpole.path / "seed_0/checkpoints", "latest", POOR, plain=config("cartpole"), step=1024)
    other, same = measure(reference, protocol)
    assert (other.is_stored, same.is_stored) == (False, True)
    assert 0 < other.figures["mean"] < 500.0


def test_fresh_episodes_are_never_used_twice_and_stand_beside_the_claim(cartpole: Run, tmp_path: Path) -> None:
    reference = resolve("cartpole_001", tmp_path)
    report = list(measure(reference, protocol_for(reference, root=tmp_path)))
    seen: list[int] = []
    for count in (3, 4):
        protocol = protocol_for(reference, root=tmp_path, episodes=count, is_fresh=True)
        found = list(measure(reference, protocol))
        assert [one.claimed["score"] for one in found] == [one.figures["mean"] for one in report]
        seen += [row["seed"] for one in found if one.file for row in files.read_json(one.file)["episodes"]]
    assert seen == list(range(300_000, 300_014))
    assert {document["purpose"] for document in cartpole.evaluations()} == {"report", "fresh"}


def test_the_claim_of_a_best_checkpoint_is_the_evaluation_that_chose_it(cartpole: Run, tmp_path: Path) -> None:
    chosen = {"purpose": "selection", "mean": 777.0, "time": 1.0, "seed": 0}
    store.save_evaluation(cartpole.path, "sel", "seed_0_step_1024", chosen)
    reference = resolve("cartpole_001:best", tmp_path)
    first, other = measure(reference, protocol_for(reference, root=tmp_path, episodes=2, is_fresh=True))
    assert first.claimed == {"score": 777.0, "purpose": "selection"}
    assert other.claimed == {}


def test_a_protocol_from_a_file_is_the_same_for_every_run(cartpole: Run, tmp_path: Path) -> None:
    make_run(tmp_path, "short", {0: GOOD}, env={"id": "CartPole-v1", "kwargs": {"max_episode_steps": 50}})
    file = tmp_path / "protocol.yaml"
    file.write_text("env: {id: CartPole-v1}\neval: {report_episodes: 7, deterministic: true}\n")
    names = {
        protocol_for(resolve(name, tmp_path), root=tmp_path, file=file).fingerprint()
        for name in ("short_001", cartpole.name)
    }
    assert len(names) == 1
    (one,) = measure(
        resolve("short_001", tmp_path), protocol_for(resolve("short_001", tmp_path), root=tmp_path, file=file)
    )
    assert (one.figures["n"], one.figures["mean"]) == (7, 500.0)


def test_seeds_without_the_checkpoint_are_passed_over(cartpole: Run, tmp_path: Path) -> None:
    shutil.rmtree(cartpole.path / "seed_0/checkpoints/best")
    reference = resolve("cartpole_001:best", tmp_path)
    assert [one.seed for one in measure(reference, protocol_for(reference, root=tmp_path, episodes=2))] == [3]
    shutil.rmtree(cartpole.path / "seed_3/checkpoints/best")
    with pytest.raises(NotFound, match="seed 0 of cartpole_001 has no checkpoint `best`"):
        list(measure(reference, protocol_for(reference, root=tmp_path, episodes=2)))


def test_a_run_that_cannot_be_written_to_is_measured_and_not_kept(cartpole: Run, tmp_path: Path) -> None:
    (cartpole.path / "eval").write_text("in the way")
    reference = resolve("cartpole_001", tmp_path)
    found = list(measure(reference, protocol_for(reference, root=tmp_path, episodes=2)))
    assert [one.file for one in found] == [None, None]
    assert found[0].figures["mean"] == 500.0


def test_progress_counts_the_episodes_of_all_seeds_and_yardsticks_as_one(cartpole: Run, tmp_path: Path) -> None:
    reference = resolve("cartpole_001", tmp_path)
    told: list[tuple[int, int]] = []
    protocol = protocol_for(reference, root=tmp_path, episodes=3)
    assert len(list(measure(reference, protocol, progress=lambda done, total: told.append((done, total))))) == 2
    assert {total for _, total in told} == {9}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1] == (9, 9)
