"""A labelled training is real, and what is stored of it is what a diagnosis reads."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from labelled import runs
from labelled.broken_algorithms import PATCHES
from labelled.cases import Case, cases
from labelled.pack import pack, unpack
from labelled.tasks import changed
from labelled.train import train, true_score

from rlx.diagnose import load_case
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.runs.run import Run


class Small(Case):
    """A case that takes a second."""

    @cached_property
    def config(self) -> dict[str, object]:
        size = {"algo.total_timesteps": 512, "log.every": 64, "eval.every": 256, "eval.episodes": 2,
                "eval.report_episodes": 2, "env.num_envs": 2}  # fmt: skip
        is_ppo = self.task.algorithm == "ppo"
        own = {"algo.rollout_steps": 32, "algo.batch_size": 32} if is_ppo else {"algo.learning_starts": 64}
        return changed(super().config, {**size, **own})


def weights(run: Run, name: str) -> dict[str, np.ndarray]:
    with mock.patch.dict(os.environ, RLX_ROOT=str(run.path.parent.parent)):
        return dict(checkpoints.read(run.seeds[0].checkpoints / name, with_replay=False).policy)


def moved(run: Run) -> set[str]:
    """Return the weights that training changed."""
    before, after = weights(run, checkpoints.UNTRAINED), weights(run, "latest")
    return {name for name in before if not np.array_equal(before[name], after[name])}


def test_a_packed_run_reads_as_the_run_itself_but_for_digits(tmp_path: Path) -> None:
    case = Small("grid_ppo", "bribe", "tuned", 0)
    run = train(case, tmp_path / "trained")
    assert run.status == "completed"
    row = pack(case, run, score=true_score(case, run))
    was, now = load_case.read_case(run), load_case.read_case(unpack(row, case, tmp_path / "unpacked"))

    assert (now.algorithm, now.planned_steps, now.missing, was.missing) == ("ppo", 512, (), ())
    assert now.config == was.config
    (before,), (after,) = was.seeds, now.seeds
    assert (after.state, after.step, after.missing) == (before.state, before.step, before.missing)
    assert set(before.series) - set(after.series) == {"time/cpu_seconds", "time/memory_mb"}
    for name, series in after.series.items():
        np.testing.assert_allclose(series.values, before.series[name].values, rtol=6e-3)
        np.testing.assert_array_equal(series.steps, before.series[name].steps)
    np.testing.assert_allclose(after.evaluations.values, before.evaluations.values, rtol=6e-3)
    for one, other in ((after.report, before.report), (after.untrained, before.untrained), (now.random, was.random)):
        assert one is not None
        assert other is not None
        assert one.mean == pytest.approx(other.mean, rel=6e-3, abs=1e-9)
        assert (one.episodes, one.step) == (other.episodes, other.step)


def test_a_training_that_fails_is_a_result_and_its_untrained_policy_is_scored(tmp_path: Path) -> None:
    class Poisoned(Small):
        @cached_property
        def config(self) -> dict[str, object]:
            return changed(super().config, {"env.wrappers": [{"labelled.broken_rewards:NotANumber": {"chance": 0.5}}]})

    case = Poisoned("cartpole_ppo", "", "tuned", 0)
    run = train(case, tmp_path)
    row = pack(case, run, score=true_score(case, run))
    assert row["end"]["event"] == "failed"
    assert "nan" in row["end"]["reason"]
    assert row["score"] > 0
    assert "traceback" not in row["end"]


def test_an_actor_without_gradient_stays_while_its_critic_learns(tmp_path: Path) -> None:
    with PATCHES["advantage_erased"]():
        changed_weights = moved(train(Small("cartpole_ppo", "", "tuned", 0), tmp_path / "broken"))
    whole = moved(train(Small("cartpole_ppo", "", "tuned", 0), tmp_path / "whole"))
    assert changed_weights < whole
    assert changed_weights


def test_patches_change_what_is_learned_and_are_gone_afterwards(tmp_path: Path) -> None:
    case = Small("cartpole_ppo", "", "tuned", 0)
    learned = {}
    for patch in ("", "advantage_flipped", "advantage_misaligned", "ends_ignored", ""):
        with PATCHES[patch]():
            found = weights(train(case, tmp_path / f"{len(learned)}{patch}"), "latest")
        flat = np.concatenate([found[name].ravel() for name in sorted(found)])
        if patch in learned:
            np.testing.assert_array_equal(learned[patch], flat)
        learned[patch] = flat
    assert len({array.tobytes() for array in learned.values()}) == 4


@pytest.mark.slow
def test_a_replay_buffer_that_forgets_ends_has_none(tmp_path: Path) -> None:
    buffers = pytest.importorskip("stable_baselines3.common.buffers")
    stored = []
    add = buffers.ReplayBuffer.add

    def watched(self: object, *args: object, **kwargs: object) -> None:
        add(self, *args, **kwargs)
        stored.append(float(np.asarray(self.dones).sum()))  # type: ignore[attr-defined]

    with mock.patch.object(buffers.ReplayBuffer, "add", watched), PATCHES["ends_lost"]():
        train(Small("grid_dqn", "", "tuned", 0), tmp_path)
    assert stored
    assert max(stored) == 0


def test_lines_of_the_present_plan_are_kept_loose_or_packed_the_newest_first(tmp_path: Path) -> None:
    packed, loose = tmp_path / "runs.jsonl.xz", tmp_path / "runs.jsonl"
    one, two = cases()[:2]
    runs.add({"case": one.name, "plan": "another", "score": 0.0}, loose)
    runs.add({"case": one.name, "plan": one.plan, "score": 1.0}, loose)
    assert runs.pack(packed, loose) == 1
    runs.add({"case": one.name, "plan": one.plan, "score": 2.0}, loose)
    runs.add({"case": two.name, "plan": two.plan, "score": 3.0}, loose)
    for _ in range(2):
        assert {case: row["score"] for case, row in runs.rows(packed, loose).items()} == {one: 2.0, two: 3.0}
        runs.pack(packed, loose)
    assert loose.read_bytes() == b""


def test_the_committed_trainings_can_be_read() -> None:
    for case, row in list(runs.rows(loose=Path("none")).items())[:5]:
        assert row["plan"] == case.plan
