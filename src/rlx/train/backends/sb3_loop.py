"""The training loops: collect, update, tell the session; no `learn`, so that every boundary is ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from sb3_contrib.ars.ars import ARS
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from torch.distributions import Distribution

from rlx.train.backends import sb3_health, sb3_state
from rlx.train.backends.sb3_learner import Learner
from rlx.train.session import Session
from rlx.train.watch import Watch


def train(session: Session) -> None:
    """Train one seed until it is complete or the session says stop."""
    learner = Learner(session.experiment, root=session.root, seed=session.seed)
    try:
        with _unvalidated_distributions():
            _train(learner, session)
    finally:
        learner.close()


def _train(learner: Learner, session: Session) -> None:
    if session.checkpoint is None:
        learner.begin()
        _tell_beginning(learner, session)
    else:
        learner.restore(session.checkpoint)
    if isinstance(learner.algorithm, ARS):
        _random_search(learner, session)
    elif isinstance(learner.algorithm, OnPolicyAlgorithm):
        _on_policy(learner, session)
    else:
        assert isinstance(learner.algorithm, OffPolicyAlgorithm)
        _off_policy(learner, session)


def _on_policy(learner: Learner, session: Session) -> None:
    algorithm: Any = learner.algorithm
    watch = Callback(learner, session)
    while not learner.is_complete:
        learner.env.rewards.clear()
        with watch.rollout(), _named_divergence(learner):
            is_whole = algorithm.collect_rollouts(
                algorithm.env, watch, algorithm.rollout_buffer, n_rollout_steps=algorithm.n_steps
            )
        if not is_whole:
            session.interrupt(lambda: learner.bundle(watch.mark))
            return
        algorithm._update_current_progress_remaining(learner.step, learner.total)
        with _named_divergence(learner), _recorded_gradients(learner, session):
            algorithm.train()
        if not _ends_well(learner, session):
            return


def _off_policy(learner: Learner, session: Session) -> None:
    algorithm: Any = learner.algorithm
    watch = Callback(learner, session)
    while not learner.is_complete:
        learner.env.rewards.clear()
        with _named_divergence(learner):
            rollout = algorithm.collect_rollouts(
                algorithm.env,
                callback=watch,
                train_freq=algorithm.train_freq,
                action_noise=algorithm.action_noise,
                learning_starts=algorithm.learning_starts,
                replay_buffer=algorithm.replay_buffer,
                log_interval=None,
            )
            steps = algorithm.gradient_steps if algorithm.gradient_steps >= 0 else rollout.episode_timesteps
            if learner.step > algorithm.learning_starts and steps > 0:
                with _recorded_gradients(learner, session):
                    algorithm.train(batch_size=algorithm.batch_size, gradient_steps=steps)
        if not _ends_well(learner, session):
            return


def _random_search(learner: Learner, session: Session) -> None:
    algorithm: Any = learner.algorithm
    watch = Callback(learner, session, raises=True)
    while not learner.is_complete:
        algorithm._update_current_progress_remaining(learner.step, learner.total)
        learner.env.rewards.clear()
        try:
            with watch.rollout():
                algorithm._do_one_update(watch, None)
        except StopAskedError:
            session.interrupt(lambda: learner.bundle(watch.mark))
            return
        algorithm.num_timesteps = learner.env.steps
        if not _ends_well(learner, session):
            return


def _ends_well(learner: Learner, session: Session) -> bool:
    """Check the update and tell the session; False means: end now."""
    is_due = session.is_due(learner.step)
    learner.check_health(with_parameters=is_due)
    if not is_due:
        return True
    with sb3_state.untouched_randomness() as randomness:  # an evaluation draws from it
        return session.after_update(
            learner.step,
            learner.metrics,
            policy=learner.policy,
            snapshot=lambda: learner.bundle(learner.mark() | {"random": randomness}),
        )


def _recorded_gradients(learner: Learner, session: Session) -> AbstractContextManager[None]:
    """Record the gradients' norms where a row may be written after the update."""
    return learner.gradient_norms.recorded() if session.is_due(learner.step) else nullcontext()


def _tell_beginning(learner: Learner, session: Session) -> None:
    with sb3_state.untouched_randomness() as randomness:
        session.begin(learner.policy, lambda: learner.bundle(learner.mark() | {"random": randomness}))


@contextmanager
def _named_divergence(learner: Learner) -> Iterator[None]:
    """Say which parameter is not finite where torch only says that it cannot sample or compute."""
    try:
        yield
    except (ValueError, RuntimeError):
        sb3_health.check_parameters(learner.algorithm.policy, step=learner.step)
        raise


@contextmanager
def _unvalidated_distributions() -> Iterator[None]:
    """Skip torch's check of every distribution's arguments (8 % of PPO's time): ours looks once an update."""
    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)


class StopAskedError(Exception):
    """A stop was asked for inside a loop that takes no answer from its callback."""


class Callback(Watch):
    """The watch as SB3 calls it."""

    def __init__(self, learner: Learner, session: Session, *, raises: bool = False) -> None:
        super().__init__(learner, session)
        self._raises = raises

    def on_step(self) -> bool:
        """Say whether the rollout goes on."""
        goes_on = super().on_step()
        if self._raises and not goes_on:
            raise StopAskedError
        return goes_on

    def update_locals(self, _: dict[str, Any]) -> None:
        """Need nothing of the rollout's inside."""

    def on_rollout_start(self) -> None:
        """Have marked the boundary before."""

    def on_rollout_end(self) -> None:
        """Leave the boundary to the loop."""
