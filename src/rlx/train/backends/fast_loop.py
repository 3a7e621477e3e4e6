"""The training loop: collect, learn, tell the session."""

from __future__ import annotations

from rlx.envs.generators import GlobalGenerators, global_generators_kept
from rlx.runs.checkpoint import Bundle
from rlx.train.backends.fast_learner import Learner
from rlx.train.backends.fast_threads import use_one_thread
from rlx.train.session import Session
from rlx.train.watch import Watch


def train(session: Session) -> None:
    """Train one seed until it is complete or the session says stop."""
    use_one_thread()
    learner = Learner(session.experiment, root=session.root, seed=session.seed)
    try:
        if session.checkpoint is None:
            learner.begin()
            _tell_beginning(learner, session)
        else:
            learner.restore(session.checkpoint)
        _train(learner, session)
    finally:
        learner.close()


def _train(learner: Learner, session: Session) -> None:
    watch = Watch(learner, session)
    while not learner.is_complete:
        with watch.rollout():
            is_whole = learner.collect(watch.on_step)
        if not is_whole:
            session.interrupt(lambda: learner.bundle(watch.mark))
            return
        learner.learn()
        learner.check_health()
        if session.is_due(learner.step) and not _tell(learner, session):
            return


def _tell_beginning(learner: Learner, session: Session) -> None:
    with global_generators_kept() as randomness:
        session.begin(learner.policy, lambda: _snapshot(learner, randomness))


def _tell(learner: Learner, session: Session) -> bool:
    """Tell the session; False means: end now."""
    with global_generators_kept() as randomness:  # whatever an evaluation draws
        return session.after_update(
            learner.step,
            learner.metrics(),
            policy=learner.policy,
            snapshot=lambda: _snapshot(learner, randomness),
        )


def _snapshot(learner: Learner, randomness: GlobalGenerators) -> Bundle:
    return learner.bundle(learner.mark() | {"random": randomness.document()})
