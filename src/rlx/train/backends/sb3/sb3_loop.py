"""The training loops of the SB3 backend: collect, update, report to the session.

They replace SB3's `learn`, so that rlx can save and resume after every update.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from sb3_contrib.ars.ars import ARS
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from torch.distributions import Distribution

from rlx.envs.global_rng import global_generators_kept
from rlx.train import finite_checks
from rlx.train.backends.sb3.sb3_learner import Sb3Learner
from rlx.train.rollout_watch import RolloutWatch
from rlx.train.session import Session


def train(session: Session) -> None:
    """Train one seed until it is complete or the session requests a stop."""
    learner = Sb3Learner(session.experiment, root=session.root, seed=session.seed)
    try:
        with _unvalidated_distributions():
            _train(learner, session)
    finally:
        learner.close()


def _train(learner: Sb3Learner, session: Session) -> None:
    if session.checkpoint is not None:
        learner.restore(session.checkpoint)
    else:
        learner.begin()
        with global_generators_kept() as generators:
            random = {"random": generators.document()}
            session.begin(learner.policy, lambda: learner.bundle(learner.mark() | random))
    if isinstance(learner.algorithm, ARS):
        advance = _advance_random_search
    elif isinstance(learner.algorithm, OnPolicyAlgorithm):
        advance = _advance_on_policy
    else:
        assert isinstance(learner.algorithm, OffPolicyAlgorithm)
        advance = _advance_off_policy
    watch = Callback(learner, session, raises=isinstance(learner.algorithm, ARS))
    while not learner.is_complete:
        learner.env.raw_rewards.clear()
        with _named_divergence(learner):
            is_whole = advance(learner, session, watch)
        if not is_whole:
            session.interrupt(lambda: learner.bundle(watch.mark))
            return
        if not _report(learner, session):
            return


def _advance_on_policy(learner: Sb3Learner, session: Session, watch: Callback) -> bool:
    """Collect a rollout and update; return False if the rollout was interrupted."""
    algorithm: Any = learner.algorithm
    with watch.rollout():
        is_whole = algorithm.collect_rollouts(
            algorithm.env, watch, algorithm.rollout_buffer, n_rollout_steps=algorithm.n_steps
        )
    if not is_whole:
        return False
    algorithm._update_current_progress_remaining(learner.step, learner.total)
    with _recorded_gradients(learner, session):
        algorithm.train()
    return True


def _advance_off_policy(learner: Sb3Learner, session: Session, watch: Callback) -> bool:
    """Collect a few steps and update. They are never interrupted: no state was marked before them."""
    algorithm: Any = learner.algorithm
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
    return True


def _advance_random_search(learner: Sb3Learner, session: Session, watch: Callback) -> bool:
    """Make one update of ARS; return False if it was interrupted."""
    algorithm: Any = learner.algorithm
    algorithm._update_current_progress_remaining(learner.step, learner.total)
    try:
        with watch.rollout():
            algorithm._do_one_update(watch, None)
    except StopRequested:
        return False
    algorithm.num_timesteps = learner.env.steps
    return True


def _report(learner: Sb3Learner, session: Session) -> bool:
    """Check the update and report to the session; return False if training has to end."""
    is_due = session.is_due(learner.step)
    finite_checks.check_losses(learner.log.values, step=learner.step)
    if not is_due:
        return True
    check_parameters(learner.algorithm.policy, step=learner.step)
    with global_generators_kept() as generators:  # an evaluation may draw from them
        random = {"random": generators.document()}
        return session.after_update(
            learner.step,
            learner.metrics,
            policy=learner.policy,
            snapshot=lambda: learner.bundle(learner.mark() | random),
        )


def check_parameters(module: torch.nn.Module, *, step: int) -> None:
    """Raise `Diverged` if a network's parameter is not finite; one fused pass unless something is wrong."""
    parameters = [parameter.detach() for parameter in module.parameters()]
    if not parameters or math.isfinite(float(torch.stack(torch._foreach_norm(parameters)).sum())):
        return
    for name, parameter in module.named_parameters():
        bad = parameter.detach()[~torch.isfinite(parameter.detach())]
        if len(bad):
            raise finite_checks.Diverged(f"parameter `{name}`", float(bad[0]), step)


def _recorded_gradients(learner: Sb3Learner, session: Session) -> AbstractContextManager[None]:
    """Record the gradients' norms if a row may be written after the update."""
    return learner.gradient_norms.recorded() if session.is_due(learner.step) else nullcontext()


@contextmanager
def _named_divergence(learner: Sb3Learner) -> Iterator[None]:
    """Name the parameter that is not finite; torch only says that it cannot sample or compute."""
    try:
        yield
    except (ValueError, RuntimeError):
        check_parameters(learner.algorithm.policy, step=learner.step)
        raise


@contextmanager
def _unvalidated_distributions() -> Iterator[None]:
    """Skip torch's check of every distribution's arguments (8 % of PPO's time): rlx checks once per update."""
    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)


class StopRequested(Exception):
    """A stop was requested inside a loop that ignores its callback's answer."""


class Callback(RolloutWatch):
    """The watch as SB3 calls it."""

    def __init__(self, learner: Sb3Learner, session: Session, *, raises: bool = False) -> None:
        super().__init__(
            take_mark=learner.mark,
            show_progress=lambda: session.progress(learner.step, learner.recent_return()),
            is_stop_requested=lambda: session.stop_requested,
        )
        self._raises = raises

    def on_step(self) -> bool:
        """Return whether the rollout goes on, or raise `StopRequested` if SB3 would ignore the answer."""
        goes_on = super().on_step()
        if self._raises and not goes_on:
            raise StopRequested
        return goes_on

    def _ignore(self, *_: Any) -> None:
        """Do nothing when SB3 calls a hook that rlx does not need."""

    update_locals = on_rollout_start = on_rollout_end = _ignore
