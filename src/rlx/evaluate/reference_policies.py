"""The scores of the random and the untrained policy under a protocol, stored next to every score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlx import files
from rlx.evaluate.policy import rebuild
from rlx.evaluate.protocol import Protocol
from rlx.evaluate.rollout import Evaluation, Evaluator
from rlx.runs import store
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.runs.store import RANDOM

NOT_FIGURES = (
    "schema", "fingerprint", "purpose", "time", "protocol", "episodes", "seed", "step", "checkpoint", "identity",
)  # fmt: skip


def reference_scores(evaluator: Evaluator, run: Path | None, *, seed: int | None) -> dict[str, Any]:
    """Return the scores of the random policy and of the seed's untrained one, measured once and then reused.

    A seed that was trained before rlx kept the untrained policy has none.
    """
    if run is None:
        return {RANDOM: evaluator.evaluate_random().summary()}
    scores = {RANDOM: _measure_once(evaluator, run, RANDOM, evaluator.evaluate_random, {})}
    folder = _untrained(run, seed)
    if folder.exists():

        def evaluate_untrained() -> Evaluation:
            return evaluator.evaluate(rebuild(checkpoints.read(folder, with_replay=False)), seed=seed or 0)

        name = f"seed_{seed}_{checkpoints.UNTRAINED}"
        facts = {"seed": seed, "step": 0}
        scores[checkpoints.UNTRAINED] = _measure_once(evaluator, run, name, evaluate_untrained, facts)
    return scores


def _untrained(run: Path, seed: int | None) -> Path:
    return run / f"seed_{seed}" / "checkpoints" / checkpoints.UNTRAINED


def count_missing(protocol: Protocol, run: Path | None, *, seeds: Sequence[int | None]) -> int:
    """Return how many reference policies will be measured along with these seeds."""
    if run is None or not seeds:
        return len(seeds)
    names = [f"seed_{seed}_{checkpoints.UNTRAINED}" for seed in seeds if _untrained(run, seed).exists()]
    stored = run / "eval" / protocol.fingerprint()
    return sum(not (stored / f"{name}.json").exists() for name in (RANDOM, *names))


def _measure_once(
    evaluator: Evaluator, run: Path, name: str, evaluate: Callable[[], Evaluation], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the figures stored under this protocol and name. If there are none, measure and store them."""
    try:
        return figures_of(files.read_json(run / "eval" / evaluator.protocol.fingerprint() / f"{name}.json"))
    except OSError:
        evaluation = evaluate()
        keep(run, evaluation.fingerprint, name, {**evaluation.document(), **facts})
        return evaluation.summary()


def figures_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a stored evaluation, as `Evaluation.summary` returned them."""
    return {key: _figure(value) for key, value in document.items() if key not in NOT_FIGURES}


def _figure(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _figure(item) for key, item in value.items()}
    if isinstance(value, str) and files.is_number(value):
        return files.number(value)
    return value


def keep(run: Path, fingerprint: str, name: str, document: dict[str, Any]) -> Path | None:
    """Store an evaluation in its run and return its file, or None if the folder cannot be written."""
    try:
        return store.save_evaluation(run, fingerprint, name, document)
    except OSError:
        return None
