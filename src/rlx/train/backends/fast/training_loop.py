"""The training loop of the fast backend: collect a rollout, learn from it, report to the sessions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlx.envs.global_rng import GlobalGenerators, global_generators_kept
from rlx.errors import ConfigError
from rlx.runs.checkpoints.checkpoint import Bundle
from rlx.train.backends.fast.env_runner import EnvRunner
from rlx.train.backends.fast.learner import FastLearner
from rlx.train.backends.fast.stacked_agent import StackedAgent
from rlx.train.rollout_metrics import EnvClock
from rlx.train.rollout_watch import RolloutWatch
from rlx.train.session import Session

OPENBLAS_SETTERS = (
    "scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads64_",
    "openblas_set_num_threads",
)  # fmt: skip


def train(sessions: Sequence[Session]) -> dict[int, Exception]:
    """Train seeds that start at the same step until they are complete or asked to stop; return the failed ones."""
    _use_one_thread()
    group = SeedGroup(sessions)
    try:
        group.for_each(_begin)
        while group.members and not group.is_complete and group.advance():
            pass
    finally:
        group.close()
    return group.errors


def _use_one_thread() -> None:
    """Set the OpenBLAS that NumPy ships to one thread: two threads round differently, and do not pay off here.

    Another BLAS library obeys the variables that a worker is started with.
    """
    package = Path(np.__file__).parent
    for library in (*package.parent.glob("numpy.libs/*openblas*"), *package.glob(".dylibs/*openblas*")):
        loaded = ctypes.CDLL(str(library))
        for name in OPENBLAS_SETTERS:
            if hasattr(loaded, name):
                getattr(loaded, name)(1)


class SeedGroup:
    """Seeds that are trained in lockstep, each with its session. A seed that fails drops out; the others go on."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        experiment = sessions[0].experiment
        root = sessions[0].root
        clock = EnvClock()
        self._runners = [EnvRunner(experiment, root=root, clock=clock) for _ in sessions]
        self.agent = StackedAgent(experiment, self._runners[0], root=root, seeds=len(sessions))
        self.members = [
            (FastLearner(self.agent, runner, seed=session.seed, index=index), session)
            for index, (runner, session) in enumerate(zip(self._runners, sessions, strict=True))
        ]
        self.errors: dict[int, Exception] = {}
        self._is_alone = len(sessions) == 1
        self._watch = RolloutWatch(
            take_mark=lambda: {learner.seed: learner.mark() for learner, _ in self.members},
            show_progress=self._show_progress,
            is_stop_requested=lambda: self.members[0][1].stop_requested,
        )

    @property
    def step(self) -> int:
        return self.members[0][0].step

    @property
    def is_complete(self) -> bool:
        return self.members[0][0].is_complete

    def advance(self) -> bool:
        """Collect, learn and report; return False if training has to end."""
        with self._watch.rollout():
            is_whole = self.collect()
        if not self.members:
            return False
        if not is_whole:
            self.for_each(
                lambda learner, session: session.interrupt(lambda: learner.bundle(self._watch.mark[learner.seed]))
            )
            return False
        self.agent.learn([learner for learner, _ in self.members])
        self.for_each(lambda learner, _: learner.check_health())
        if not self.members or not self.members[0][1].is_due(self.step):
            return True
        answers = self.for_each(_report)
        if all(answers.values()):
            return True
        self.for_each(lambda learner, session: session.interrupt(lambda: learner.bundle(learner.mark())))
        return False

    def collect(self) -> bool:
        """Fill a rollout; return False if it was interrupted."""
        rollout = self.agent.rollout
        rollout.begin()
        before = _global_generator_state()
        noise = self.agent.sample_noise([learner for learner, _ in self.members])
        for step in range(rollout.steps):
            actions = self.agent.act(step, noise, [learner for learner, _ in self.members])
            self.for_each(lambda learner, _: learner.step_env(step, actions))  # noqa: B023  called at once
            if not self.members or not self._watch.on_step():
                return False
        if not self._is_alone and _global_generator_state() != before:
            raise ConfigError(
                "the environment draws from NumPy's global random generator, which seeds trained together would share",
                hint="draw from self.np_random, or train with -s env.vectorization=sync",
            )
        return True

    def _show_progress(self) -> None:
        for learner, session in self.members:
            session.progress(learner.step, learner.recent_return())

    def close(self) -> None:
        """Close the environments."""
        for runner in self._runners:
            runner.env.close()

    def for_each(self, act: Callable[[FastLearner, Session], Any]) -> dict[int, Any]:
        """Call `act` for every seed and return its answers. A seed that raises drops out, unless it is alone."""
        answers: dict[int, Any] = {}
        for member in list(self.members):
            learner, session = member
            try:
                answers[learner.seed] = act(learner, session)
            except Exception as error:  # job supervision: one seed's failure must not end the others
                if self._is_alone:
                    raise
                self.errors[learner.seed] = error
                self.members.remove(member)
        return answers


def _global_generator_state() -> tuple[int, bytes]:
    state: Any = np.random.get_state(legacy=False)
    return state["state"]["pos"], state["state"]["key"].tobytes()


def _begin(learner: FastLearner, session: Session) -> None:
    if session.checkpoint is not None:
        learner.restore(session.checkpoint)
        return
    learner.begin()
    with global_generators_kept() as generators:
        session.begin(learner.policy, lambda: _snapshot(learner, generators))


def _report(learner: FastLearner, session: Session) -> bool:
    """Report to the session; return False if training has to end."""
    with global_generators_kept() as generators:  # an evaluation may draw from them
        return session.after_update(
            learner.step, learner.metrics, policy=learner.policy, snapshot=lambda: _snapshot(learner, generators)
        )


def _snapshot(learner: FastLearner, generators: GlobalGenerators) -> Bundle:
    return learner.bundle(learner.mark() | {"random": generators.document()})
