"""Conformance suites that plug-in authors subclass: real runs, nothing mocked."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import gymnasium
import numpy as np

from rlx.config.load import document
from rlx.config.schema import Experiment, Wrapper
from rlx.envs.make import inspect
from rlx.envs.vector import make_vector
from rlx.errors import JobFailed
from rlx.evaluate.policy import refuse_other_actions
from rlx.runs import checkpoint as checkpoints
from rlx.runs.checkpoint import Bundle, Checkpoint

if TYPE_CHECKING:
    from rlx.evaluate.policy import Policy
    from rlx.train.session import Session
    from rlx.train.trainer import Trainer


class Rehearsal:
    """A session without a run: keeps the rows, saves bundles, and asks for a stop at a given poll."""

    def __init__(
        self,
        experiment: Experiment,
        folder: Path,
        *,
        root: Path,
        seed: int = 0,
        checkpoint: Checkpoint | None = None,
        stop_at_poll: int | None = None,
        save_every_update: bool = False,
    ) -> None:
        self.experiment = experiment
        self.folder = folder
        self.root = root
        self.seed = seed
        self.checkpoint = checkpoint
        self.rows: list[tuple[int, dict[str, float]]] = []
        self.observations = sample_observations(experiment, root)
        self.greedy: Any = None
        self.is_complete = False
        self._save_every_update = save_every_update
        self.polls = 0
        self._stop_at_poll = stop_at_poll

    @property
    def stop_requested(self) -> bool:
        self.polls += 1
        return self._stop_at_poll is not None and self.polls > self._stop_at_poll

    @property
    def saved(self) -> Checkpoint:
        """The newest checkpoint, read back from disk."""
        found = checkpoints.newest(self.folder)
        assert found is not None, "nothing was saved"
        return found

    def begin(self, policy: Policy, snapshot: Callable[[], Bundle]) -> None:
        """Keep the untrained policy."""
        policy.predict(self.observations)
        self._save(snapshot().policy_only(), name=checkpoints.UNTRAINED)

    def is_due(self, step: int) -> bool:
        return True

    def after_update(
        self, step: int, metrics: Callable[[], Mapping[str, float]], *, policy: Policy, snapshot: Callable[[], Bundle]
    ) -> bool:
        """Keep the row but for the time it took; save and end where the run is complete or a stop is asked for."""
        self.rows.append((step, {key: value for key, value in metrics().items() if not key.startswith("time/")}))
        self.is_complete = step >= self.experiment.algo.total_timesteps
        goes_on = not self.is_complete and not self.stop_requested
        if self._save_every_update:
            self._save(snapshot(), name=f"step_{step}")
        if not goes_on:
            self._save(snapshot(), name="latest")
            policy.reset()
            self.greedy = policy.predict(self.observations)
        return goes_on

    def interrupt(self, snapshot: Callable[[], Bundle]) -> None:
        self._save(snapshot(), name="latest")

    def progress(self, step: int, episode_return: float | None = None) -> None:
        """Show nothing."""

    def _save(self, bundle: Bundle, *, name: str) -> None:
        checkpoints.write(self.folder, bundle, name=name, config=document(self.experiment))


class Poisoned(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Gives a reward that is not a number after some steps; for testing that training stops."""

    def __init__(self, env: gymnasium.Env[Any, Any], after: int) -> None:
        super().__init__(env)
        self.steps_left = after

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.steps_left -= 1
        return observation, math.nan if self.steps_left < 0 else reward, terminated, truncated, info


def sample_observations(experiment: Experiment, root: Path, count: int = 4) -> Any:
    """Return a batch of raw observations of the experiment's environment."""
    env = make_vector(experiment.env, root=root, num_envs=count)
    try:
        return env.reset(seed=7)[0]
    finally:
        env.close()


def digest(bundle: Bundle) -> str:
    """Return the sha256 of all weights and optimizer states."""
    total = hashlib.sha256()
    for part in (bundle.policy, bundle.optimizer):
        for name in sorted(part):
            total.update(f"{name} {part[name].dtype} {part[name].shape}".encode())
            total.update(np.asarray(part[name], order="C").tobytes())
    return total.hexdigest()


class TrainerContract:
    """What every training backend must hold. Subclass it, name the trainer, and return a tiny experiment.

    The experiment should take a second or two, with a handful of updates; `stops` are shares of the whole run at
    which training is interrupted, one after the other, each counted from where the one before it left off.
    """

    trainer: ClassVar[Callable[[], Trainer]]
    stops: ClassVar[tuple[float, ...]] = (0.0, 0.02, 0.11, 0.23, 0.31)

    def experiment(self) -> Experiment:
        """Return a small, fully resolved experiment."""
        raise NotImplementedError

    def root(self) -> Path:
        """Return the project's root, where `file.py:Class` names are looked up."""
        return Path.cwd()

    def rehearse(self, folder: Path, experiment: Experiment | None = None, **settings: Any) -> Rehearsal:
        """Train once and return the session."""
        session = Rehearsal(experiment or self.experiment(), folder, root=self.root(), **settings)
        type(self).trainer().train(cast("Session", session))
        return session

    def test_the_experiment_passes_its_own_check(self) -> None:
        experiment = self.experiment()
        found = type(self).trainer().check(experiment, inspect(experiment.env, root=self.root()))
        assert [problem for problem in found if problem.is_error] == []

    def test_trains_to_the_planned_step_and_logs_the_last_update(self, tmp_path: Path) -> None:
        session = self.rehearse(tmp_path)
        steps = [step for step, _ in session.rows]
        assert session.is_complete
        assert steps == sorted(set(steps))
        assert steps[-1] == session.saved.step >= session.experiment.algo.total_timesteps
        assert "train/learning_rate" in session.rows[-1][1]
        assert all(isinstance(value, float) for _, row in session.rows for value in row.values())

    def test_the_same_seed_gives_the_same_weights(self, tmp_path: Path) -> None:
        one, two = (self.rehearse(tmp_path / name) for name in ("one", "two"))
        assert digest(one.saved) == digest(two.saved)

    def test_another_seed_gives_other_weights(self, tmp_path: Path) -> None:
        one, two = (self.rehearse(tmp_path / str(seed), seed=seed) for seed in (0, 1))
        assert digest(one.saved) != digest(two.saved)

    def test_a_stop_request_is_honoured_and_leaves_a_checkpoint(self, tmp_path: Path) -> None:
        whole = self.rehearse(tmp_path / "whole")
        session = self.rehearse(tmp_path / "stopped", stop_at_poll=whole.polls // 2)
        assert not session.is_complete
        assert session.saved.step < session.experiment.algo.total_timesteps

    def test_stopped_and_resumed_again_and_again_it_ends_where_it_would_have(self, tmp_path: Path) -> None:
        whole = self.rehearse(tmp_path / "whole")
        checkpoint: Checkpoint | None = None
        for share in (*self.stops, None):
            stop = None if share is None else int(share * whole.polls)
            session = self.rehearse(tmp_path / "parts", checkpoint=checkpoint, stop_at_poll=stop)
            checkpoint = session.saved
        assert session.is_complete
        assert session.saved.step == whole.saved.step
        if whole.saved.resume == "exact":
            assert digest(session.saved) == digest(whole.saved)
        else:
            assert whole.saved.missing

    def test_resumed_from_any_boundary_it_ends_where_it_would_have(self, tmp_path: Path) -> None:
        whole = self.rehearse(tmp_path / "whole", save_every_update=True)
        names = [name for name in checkpoints.names(whole.folder) if name.startswith("step_")]
        for name in names[:: max(1, len(names) // 3)]:
            found = checkpoints.read(whole.folder / name)
            if found.step >= whole.experiment.algo.total_timesteps:
                continue
            resumed = self.rehearse(tmp_path / name, checkpoint=found)
            assert resumed.saved.step == whole.saved.step
            if found.resume == "exact":
                assert digest(resumed.saved) == digest(whole.saved), name

    def test_a_loaded_policy_acts_as_it_did_in_training_and_the_untrained_one_loads(self, tmp_path: Path) -> None:
        session = self.rehearse(tmp_path)
        policy = type(self).trainer().load(session.saved)
        refuse_other_actions(policy, session.saved)
        np.testing.assert_array_equal(policy.predict(session.observations), session.greedy)

        untrained = checkpoints.read(session.folder / checkpoints.UNTRAINED)
        assert (untrained.step, untrained.optimizer, untrained.replay) == (0, {}, {})
        assert digest(untrained) != digest(session.saved)
        type(self).trainer().load(untrained).predict(session.observations)

    def test_a_reward_that_is_not_a_number_stops_the_seed(self, tmp_path: Path) -> None:
        import pytest

        experiment = self.experiment()
        poison = Wrapper(name=f"{__name__}:{Poisoned.__name__}", kwargs={"after": 20})
        env = experiment.env.model_copy(update={"wrappers": (*experiment.env.wrappers, poison)})
        with pytest.raises(JobFailed, match=r"reward.* is nan at step \d+"):
            self.rehearse(tmp_path, experiment.model_copy(update={"env": env}))
