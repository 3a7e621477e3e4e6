"""What no training scores under a protocol, kept beside every score: the random policy and the untrained one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlx import files
from rlx.evaluate.policy import rebuild
from rlx.evaluate.protocol import Protocol
from rlx.evaluate.rollout import Evaluation, Evaluator
from rlx.runs import checkpoint as checkpoints
from rlx.runs import store
from rlx.runs.store import RANDOM

NOT_FIGURES = (
    "schema", "fingerprint", "purpose", "time", "protocol", "episodes", "seed", "step", "checkpoint", "identity",
)  # fmt: skip


def yardsticks(evaluator: Evaluator, run: Path | None, *, seed: int | None) -> dict[str, Any]:
    """Return the scores of the random policy and of the seed's untrained one, measured once and then reused.

    A seed trained before rlx kept the untrained policy has none.
    """
    if run is None:
        return {RANDOM: evaluator.evaluate_random().summary()}
    found = {RANDOM: _kept(evaluator, run, RANDOM, evaluator.evaluate_random, about={})}
    folder = run / f"seed_{seed}" / "checkpoints" / checkpoints.UNTRAINED
    if not folder.exists():
        return found

    def untrained() -> Evaluation:
        return evaluator.evaluate(rebuild(checkpoints.read(folder, with_replay=False)), seed=seed or 0)

    name, about = f"seed_{seed}_{checkpoints.UNTRAINED}", {"seed": seed, "step": 0}
    return {**found, checkpoints.UNTRAINED: _kept(evaluator, run, name, untrained, about=about)}


def unkept(protocol: Protocol, run: Path | None, *, seeds: Sequence[int | None]) -> int:
    """Return how many yardsticks will be measured beside the scores of these seeds."""
    if run is None:
        return len(seeds)
    folders = {seed: run / f"seed_{seed}" / "checkpoints" / checkpoints.UNTRAINED for seed in seeds}
    names = [f"seed_{seed}_{checkpoints.UNTRAINED}" for seed, folder in folders.items() if folder.exists()]
    kept = run / "eval" / protocol.fingerprint()
    return sum(not (kept / f"{name}.json").exists() for name in ([RANDOM, *names] if seeds else []))


def _kept(
    evaluator: Evaluator, run: Path, name: str, measure: Callable[[], Evaluation], *, about: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the figures stored under this protocol and name; measured and stored where there are none."""
    path = run / "eval" / evaluator.protocol.fingerprint() / f"{name}.json"
    try:
        return figures_of(files.read_json(path))
    except OSError:
        evaluation = measure()
        keep(run, evaluation.fingerprint, name, {**evaluation.document(), **about})
        return evaluation.summary()


def figures_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a stored evaluation, as `Evaluation.summary` gave them."""
    return {key: _figure(value) for key, value in document.items() if key not in NOT_FIGURES}


def _figure(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _figure(item) for key, item in value.items()}
    return files.number(value) if isinstance(value, str) and files.is_number(value) else value


def keep(run: Path, fingerprint: str, name: str, document: dict[str, Any]) -> Path | None:
    """Store an evaluation in its run; None where the folder cannot be written to."""
    try:
        return store.save_evaluation(run, fingerprint, name, document)
    except OSError:
        return None
