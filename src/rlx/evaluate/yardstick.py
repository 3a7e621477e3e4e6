"""What no training scores under a protocol, kept beside every score: the random policy and the untrained one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlx import files
from rlx.evaluate.policy import rebuild
from rlx.evaluate.rollout import Evaluation, Evaluator
from rlx.runs import checkpoint as checkpoints
from rlx.runs import store

RANDOM = "random"
FIGURES = ("n", "mean", "std", "median", "min", "max", "length_mean", "success_rate", "cut")


def yardsticks(evaluator: Evaluator, run: Path | None, *, seed: int | None) -> dict[str, Any]:
    """Return the scores of the random policy and of the seed's untrained one, measured once and then reused.

    A seed trained before rlx kept the untrained policy has none.
    """
    if run is None:
        return {RANDOM: evaluator.evaluate_random().summary()}
    found = {RANDOM: _kept(evaluator, run, RANDOM, evaluator.evaluate_random)}
    folder = run / f"seed_{seed}" / "checkpoints" / checkpoints.UNTRAINED
    if not folder.exists():
        return found

    def untrained() -> Evaluation:
        return evaluator.evaluate(rebuild(checkpoints.read(folder, with_replay=False)))

    return {**found, checkpoints.UNTRAINED: _kept(evaluator, run, f"seed_{seed}_{checkpoints.UNTRAINED}", untrained)}


def _kept(evaluator: Evaluator, run: Path, name: str, measure: Callable[[], Evaluation]) -> dict[str, Any]:
    """Return the figures stored under this protocol and name; measured and stored where there are none."""
    path = run / "eval" / evaluator.protocol.fingerprint() / f"{name}.json"
    try:
        document = files.read_json(path)
    except FileNotFoundError:
        evaluation = measure()
        store.save_evaluation(run, evaluation.fingerprint, name, evaluation.document())
        return evaluation.summary()
    figures = {key: document[key] for key in FIGURES if key in document}
    return {key: files.number(value) if isinstance(value, str) else value for key, value in figures.items()}
