"""Run one real training of a case in this process on one thread, and return the true score of its policy."""

from __future__ import annotations

import os
from pathlib import Path
from unittest import mock

from labelled.broken_algorithms import PATCHES
from labelled.cases import Case
from rlx.config.load import parse
from rlx.config.schema import Experiment
from rlx.evaluate.policy import rebuild
from rlx.evaluate.protocol import Protocol
from rlx.evaluate.rollout import Evaluator
from rlx.launch.launch import create
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.runs.live import LiveSeed
from rlx.runs.run import Run
from rlx.train.session import Session
from rlx.train.trainer import train as train_sessions

EPISODES = 20


def train(case: Case, root: Path) -> Run:
    """Train a case as a run of the project at `root`; an error that training raises is stored as its end."""
    experiment = _experiment(case.config, case.seed)
    run = create(experiment, root=root)
    live = LiveSeed(run.seeds[0].folder, root=root)
    operator = case.operator
    try:
        with PATCHES[operator.patch if operator else ""]():
            session = Session(experiment, live)
            train_sessions(experiment, [session])
            session.close()
        live.completed(session.step)
    except Exception as error:  # a diverged training is a result
        live.failed(error)
    finally:
        live.close()
    return Run(run.path)


def true_score(case: Case, run: Run) -> float:
    """Return the mean return of the last policy in the task itself; or of the untrained one if none was saved."""
    folder, root = run.seeds[0].checkpoints, run.path.parent.parent
    name = "latest" if (folder / "latest").exists() else checkpoints.UNTRAINED
    with mock.patch.dict(os.environ, RLX_ROOT=str(root)):  # whose checkpoints may name code
        policy = rebuild(checkpoints.read(folder / name, with_replay=False))
    experiment = _experiment(case.scored_config, case.seed)
    protocol = Protocol.of(experiment, purpose="fresh", root=root, episodes=EPISODES)
    with Evaluator(protocol) as evaluator:
        return evaluator.evaluate(policy).mean


def _experiment(config: dict[str, object], seed: int) -> Experiment:
    return parse({**config, "run_name": "case", "seed": seed})
