"""A policy in a process of its own: its answers are actions, or its failure, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.evaluate.checkpoint_evaluation import EvaluationResult
from tests.evaluate.foreign import Repository
from tests.evaluate.trained import Trained

pytestmark = pytest.mark.slow


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def failing(repository: Repository, body: str, **changes: object) -> str:
    """Return why a policy whose `load` has this body fails."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    (repository.worktree / "policy.py").write_text(f"import json, os, sys, time\n\ndef load(path):\n{lines}\n")
    (found,) = repository.measure(**changes)
    assert found.failure is not None, found.document
    assert found.failure.code == "policy", found.failure
    return found.failure.message


def episodes(found: EvaluationResult) -> list[float]:
    return [round(row["return"], 5) for row in found.require_document()["episodes"]]


def test_a_function_of_one_observation_is_a_policy(repository: Repository) -> None:
    half, full, over = repository.measure([repository.weights(0.5), repository.weights(1.0), repository.weights(1.5)])
    assert episodes(half) == [10.0] * 4
    assert episodes(full) == [20.0] * 4
    assert half.require_document()["figures"]["push"] == pytest.approx(10.0)
    assert half.require_document()["policy"] == "policy.py:load"
    assert over.failure is not None
    assert "outside the action space (up to 1.5)" in over.failure.message


def test_a_policy_for_batches_and_one_with_a_memory_work_too(repository: Repository) -> None:
    batches = """
        import numpy
        class Policy:
            def predict(self, observations, **_): return numpy.full((len(observations), 1), 0.25)
            def reset(self, finished=None): pass
        def load(path): return Policy()
        """
    memory = """
        class Policy:
            def __init__(self): self.steps = 0
            def reset(self): self.steps = 0
            def __call__(self, observation):
                assert observation[1] == self.steps
                self.steps += 1
                return [0.75]
        def load(path): return Policy()
        """
    for text, value in ((batches, 5.0), (memory, 15.0)):
        (repository.worktree / "policy.py").write_text("\n".join(line[8:] for line in text.splitlines()))
        (found,) = repository.measure(episodes=20)
        assert episodes(found) == [value] * 20


def test_what_it_prints_is_no_answer(repository: Repository) -> None:
    text = (repository.worktree / "policy.py").read_text()
    (repository.worktree / "policy.py").write_text("print('RLX1' * 100)\n" + text)
    assert episodes(repository.measure()[0]) == [10.0] * 4


def test_wrong_answers_are_its_failure(repository: Repository) -> None:
    assert "has the shape (4, 2)" in failing(repository, "return lambda seen: [0.1, 0.2]")
    assert "not finite" in failing(repository, "return lambda seen: [float('nan')]")
    assert "cannot be sent" in failing(repository, "return lambda seen: ['left']")
    assert "it raised ZeroDivisionError" in failing(repository, "return lambda seen: [1 / 0]")
    assert "it raised RuntimeError: no weights" in failing(repository, "raise RuntimeError('no weights')")
    assert "it raised NotFound" in failing(repository, "pass", policy="policy.py:absent")


def test_silence_noise_and_an_early_death_are_its_failure(repository: Repository) -> None:
    from rlx.evaluate.checkpoint_evaluation import EvaluationLimits

    limits = EvaluationLimits(seconds=60, start_seconds=30, answer_seconds=0.5)
    assert "did not answer in time" in failing(repository, "return lambda seen: time.sleep(600)", limits=limits)
    assert "it ended with exit code 0" in failing(repository, "os._exit(0)")
    assert "it ended" in failing(repository, "return lambda seen: os.kill(os.getpid(), 9)")
    noisy = """
for one in range(3, 20):
    try:
        os.write(one, b"x" * 100)
    except OSError:
        pass
return lambda seen: [0]
"""
    assert "garbled" in failing(repository, noisy)


SPY = """
def spy(seen):
    assert type(seen).__name__ == "ndarray" and seen.shape == (2,), seen
    return [0.5]


def load(path):
    return spy
"""


def test_it_is_told_nothing_but_observations(repository: Repository) -> None:
    (repository.worktree / "policy.py").write_text(SPY)
    assert episodes(repository.measure()[0]) == [10.0] * 4


def test_rlx_checkpoints_can_be_served_with_the_worktrees_code(trained: Trained) -> None:
    plain = [one.require_document() for one in trained.measure()]
    worktree = trained.copy(trained.root.parent / "worktree").root
    other = [one.require_document() for one in trained.measure(policy="rlx", policy_root=worktree)]
    assert [one["episodes"] for one in plain] == [one["episodes"] for one in other]
