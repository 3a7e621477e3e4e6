"""The training loop: collect, learn, tell the sessions; of one seed, or of several that share a brain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rlx.envs.generators import GlobalGenerators, global_generators_kept
from rlx.errors import ConfigError
from rlx.runs.checkpoint import Bundle
from rlx.train.backends.fast_brain import Brain
from rlx.train.backends.fast_learner import Learner
from rlx.train.backends.fast_stage import Stage
from rlx.train.backends.fast_threads import use_one_thread
from rlx.train.session import Session
from rlx.train.signals import EnvClock
from rlx.train.watch import Watch


def train(sessions: Sequence[Session]) -> dict[int, Exception]:
    """Train seeds that start level until they are complete or asked to stop; return those that failed."""
    use_one_thread()
    group = Group(sessions)
    try:
        group.begin()
        while group.members and not group.is_complete and group.advance():
            pass
    finally:
        group.close()
    return group.errors


class Group:
    """Seeds trained in lockstep, each with its session; one that fails drops out, and the others never notice."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        first = sessions[0]
        experiment, root = first.experiment, first.root
        clock = EnvClock()
        stages = [Stage(experiment, root=root, clock=clock) for _ in sessions]
        self.brain = Brain(experiment, stages[0], root=root, seeds=len(sessions))
        self.members = [
            (Learner(self.brain, stage, seed=session.seed, place=place), session)
            for place, (stage, session) in enumerate(zip(stages, sessions, strict=True))
        ]
        self.errors: dict[int, Exception] = {}
        self._stages = stages
        self._is_alone = len(sessions) == 1
        self._watch = Watch(self, self)

    @property
    def learners(self) -> list[Learner]:
        return [learner for learner, _ in self.members]

    @property
    def step(self) -> int:
        return self.members[0][0].step

    @property
    def is_complete(self) -> bool:
        return self.members[0][0].is_complete

    @property
    def stop_requested(self) -> bool:
        return self.members[0][1].stop_requested

    def begin(self) -> None:
        """Start every seed from nothing, or from its checkpoint."""
        self._each(_begin)

    def advance(self) -> bool:
        """Collect, learn, tell the sessions; False where they are to end."""
        with self._watch.rollout():
            is_whole = self._collect()
        if not self.members:
            return False
        if not is_whole:
            self._each(
                lambda learner, session: session.interrupt(lambda: learner.bundle(self._watch.mark[learner.seed]))
            )
            return False
        self.brain.learn(self.learners)
        self._each(lambda learner, _: learner.check_health())
        if not self.members or not self.members[0][1].is_due(self.step):
            return True
        answers = self._each(_tell)
        if all(answers.values()):
            return True
        self._each(lambda learner, session: session.interrupt(lambda: learner.bundle(learner.mark())))
        return False

    def mark(self) -> dict[int, Any]:
        """Return every seed's mark."""
        return {learner.seed: learner.mark() for learner in self.learners}

    def recent_return(self) -> None:
        """Leave the returns to `progress`: each seed has its own."""

    def progress(self, step: int, _: float | None = None) -> None:
        """Show how far every seed is."""
        for learner, session in self.members:
            session.progress(step, learner.recent_return())

    def close(self) -> None:
        """Close the environments."""
        for stage in self._stages:
            stage.env.close()

    def _collect(self) -> bool:
        before = _global_position()
        is_whole = self.brain.collect(self.learners, self._watch.on_step, drop=self.drop)
        if not self._is_alone and _global_position() != before:
            raise ConfigError(
                "the environment draws from NumPy's global random generator, which seeds trained together would share",
                hint="draw from self.np_random, or train with -s env.vectorization=sync",
            )
        return is_whole

    def _each(self, act: Callable[[Learner, Session], Any]) -> dict[int, Any]:
        """Do something with every seed; one for which it fails drops out, unless it is alone."""
        answers: dict[int, Any] = {}
        for learner, session in list(self.members):
            try:
                answers[learner.seed] = act(learner, session)
            except Exception as error:  # noqa: BLE001  job supervision: what one seed raises is its own outcome
                self.drop(learner, error)
        return answers

    def drop(self, learner: Learner, error: Exception) -> None:
        """Let a seed go that failed; alone, its error is everybody's."""
        if self._is_alone:
            raise error
        self.errors[learner.seed] = error
        self.members = [member for member in self.members if member[0] is not learner]


def _global_position() -> tuple[int, bytes]:
    """Return where NumPy's global generator stands."""
    state: Any = np.random.get_state(legacy=False)
    return state["state"]["pos"], state["state"]["key"].tobytes()


def _begin(learner: Learner, session: Session) -> None:
    if session.checkpoint is not None:
        learner.restore(session.checkpoint)
        return
    learner.begin()
    with global_generators_kept() as randomness:
        session.begin(learner.policy, lambda: _snapshot(learner, randomness))


def _tell(learner: Learner, session: Session) -> bool:
    """Tell the session; False means: end now."""
    with global_generators_kept() as randomness:  # whatever an evaluation draws
        return session.after_update(
            learner.step,
            learner.metrics,
            policy=learner.policy,
            snapshot=lambda: _snapshot(learner, randomness),
        )


def _snapshot(learner: Learner, randomness: GlobalGenerators) -> Bundle:
    return learner.bundle(learner.mark() | {"random": randomness.document()})
