"""The sealed evaluation: the scores of the pinned environment on the episodes asked for, whatever else fails."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rlx import files
from rlx.config.load import parse
from rlx.errors import EvidenceInvalid, Refused
from rlx.evaluate.checkpoint_evaluation import EvaluationLimits, Subject
from rlx.evaluate.episode_metrics import summarize_rows
from rlx.evaluate.measure import rebuild_fitting
from rlx.evaluate.policy import code_references
from rlx.evaluate.protocol import EPISODE_SEEDS, Protocol
from rlx.evaluate.rollout import Evaluator
from rlx.evaluate.sealed import stage_checkpoint
from rlx.evaluate.sealed.sealed_evaluation import evaluate_sealed
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.sandbox import landlock
from tests.evaluate.trained import Trained

pytestmark = pytest.mark.slow


def test_the_document_holds_everything_and_is_what_a_plain_evaluation_finds(trained: Trained) -> None:
    found = trained.measure()
    document = found[0].require_document()
    assert document == files.read_json(found[0].subject.out)
    assert (document["level"], document["purpose"], document["first"]) == ("sealed", "search", 7)
    start = EPISODE_SEEDS["search"].start + 7
    assert document["seeds"] == document["protocol"]["seeds"] == [start, start + 2]
    assert [row["seed"] for row in document["episodes"]] == [start, start + 1, start + 2]
    assert document["pin"] == trained.pin().sha256
    assert document["checkpoint"] == {"sha256": stage_checkpoint.checkpoint_sha256(trained.checkpoint(0))}
    assert document["enforced"]["probed"]
    assert document["versions"]["rlx"]
    assert summarize_rows(document["episodes"]) == document["figures"]
    assert document["figures"]["alive"] == document["figures"]["length_mean"] == document["score"]
    assert list(document["protocol"]["files"]) == ["envs/cart.py"]

    experiment = parse(trained.run.config)
    protocol = Protocol.of(experiment, root=trained.root, purpose="search", episodes=3, first=7)
    bundle = checkpoints.read(trained.checkpoint(0))
    with Evaluator(protocol) as evaluator:
        policy, _ = rebuild_fitting(evaluator, bundle, named=code_references(bundle.config))
        plain = evaluator.evaluate(policy)
    assert plain.document()["episodes"] == document["episodes"]
    assert plain.fingerprint == document["fingerprint"]


def test_one_that_cannot_be_measured_does_not_keep_others_from_it(trained: Trained) -> None:
    broken = trained.checkpoint(0)
    (broken / "policy.safetensors").write_bytes(b"not weights")
    first, second = trained.measure()
    assert first.failure is not None
    assert first.failure.code == "checkpoint"
    assert "policy.safetensors has 11 bytes" in first.failure.message
    assert not first.subject.out.exists()
    assert second.document is not None


def test_a_checkpoint_that_changed_since_it_was_recorded_is_refused_unread(trained: Trained) -> None:
    recorded = stage_checkpoint.checkpoint_sha256(trained.checkpoint(0))
    shutil.rmtree(trained.checkpoint(0))
    shutil.copytree(trained.checkpoint(1), trained.checkpoint(0))
    (found,) = evaluate_sealed(trained.seal(), [Subject(trained.checkpoint(0), recorded, trained.root / "out.json")])
    assert found.failure is not None
    assert "recorded is" in found.failure.message
    with pytest.raises(EvidenceInvalid, match="changed: "):
        found.require_document()


def test_a_changed_pin_is_invalid_for_everything(trained: Trained) -> None:
    path = trained.pin().folder / "envs" / "cart.py"
    seal = trained.seal()
    path.chmod(0o644)
    path.write_text(path.read_text().replace("return observation, reward", "return observation, 1000 * reward"))
    with pytest.raises(EvidenceInvalid, match=r"evaluator/envs/cart.py was changed"):
        evaluate_sealed(seal, [Subject(trained.checkpoint(0), None, trained.root / "out.json")])


def test_an_environment_that_cannot_be_made_is_nobodys_failure(trained: Trained) -> None:
    experiment = {**trained.run.config, "env": {"id": "envs/absent.py:Cart"}}
    with pytest.raises(EvidenceInvalid, match=r"nothing could be measured: no file `envs/absent.py`"):
        trained.measure(experiment=experiment)


def test_code_that_only_the_checkpoint_names_is_not_run(trained: Trained) -> None:
    experiment = {**trained.run.config, "env": {"id": "CartPole-v1"}}
    (found, _) = trained.measure(experiment=experiment)
    assert found.failure is not None
    assert "names code to run that the baseline does not: `envs/cart.py:Cart`" in found.failure.message


def test_a_metric_that_the_environment_does_not_report_is_nobodys_failure(trained: Trained) -> None:
    config = trained.run.config
    found = trained.measure(experiment={**config, "eval": {**config["eval"], "metric": "success_rate"}})
    assert [(one.failure.code, one.failure.is_policy_fault) for one in found if one.failure] == [("metric", False)] * 2


def test_checkpoints_of_sb3_are_rebuilt_in_the_box_too(tmp_path: Path) -> None:
    algo = {"name": "a2c", "total_timesteps": 128}
    trained = Trained.train(tmp_path / "sb3", backend="sb3", algo=algo, seeds=1)
    (found,) = trained.measure([trained.checkpoint(0)])
    assert found.require_document()["backend"] == "sb3"
    assert found.require_document()["score"] >= 1


def test_time_is_limited_a_checkpoint(trained: Trained) -> None:
    trained.root.joinpath("envs/cart.py").write_text(
        "import time\n" + trained.root.joinpath("envs/cart.py").read_text() + "\n    def render(self): ...\n"
        "    def reset(self, **given):\n        if 'seed' in given and given['seed'] > 10**6: time.sleep(600)\n"
        "        return super().reset(**given)\n"
    )
    found = trained.measure(limits=EvaluationLimits(seconds=1.0))
    assert [(one.failure.code, one.failure.is_policy_fault) for one in found if one.failure] == [("time", False)] * 2


def test_without_landlock_nothing_is_measured_unless_told_and_then_it_is_said(
    trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rlx.sandbox.self_test import run_self_test

    monkeypatch.setattr(landlock, "abi", lambda: 0)
    run_self_test.cache_clear()
    with pytest.raises(Refused, match="no Landlock"):
        trained.measure()
    (found, _) = trained.measure(may_go_unenforced=True)
    assert found.require_document()["enforced"]["mechanism"] == "none"


def test_nothing_is_left_behind(trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    trained.measure()
    assert list(place.iterdir()) == []
