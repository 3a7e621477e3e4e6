"""Pick an episode to watch: the best, the median or the worst of a protocol."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from rlx.evaluate.episode import Episode
from rlx.evaluate.policy import Policy
from rlx.evaluate.protocol import Protocol
from rlx.evaluate.rollout import Evaluator
from rlx.files import number
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.runs.run import Run

Which = Literal["best", "median", "worst"]
EVERY: tuple[Which, ...] = ("best", "median", "worst")


def pick(episodes: Sequence[Episode], which: Which) -> Episode:
    """Return the best, median (the lower of two) or worst episode by return. NaN is the worst."""

    def order(episode: Episode) -> tuple[bool, float, int]:
        if math.isnan(episode.episode_return):
            return False, 0.0, -episode.seed
        return True, episode.episode_return, -episode.seed

    ordered = sorted(episodes, key=order)
    return ordered[{"best": -1, "median": (len(ordered) - 1) // 2, "worst": 0}[which]]


def stored_episodes(run: Run | None, protocol: Protocol, checkpoint: Path, *, seed: int | None) -> list[Episode]:
    """Return the episodes that a run stores for this checkpoint under this protocol, if any."""
    if run is None:
        return []
    step = checkpoints.read(checkpoint, with_replay=False).step
    key_values = (protocol.fingerprint(), seed, checkpoint.name, step)
    for document in run.evaluations():
        if key_values == tuple(document.get(key) for key in ("fingerprint", "seed", "checkpoint", "step")):
            return [_episode(row) for row in document["episodes"] if "scenario" not in row]
    return []


def play_episodes(policy: Policy, protocol: Protocol, *, seed: int) -> list[Episode]:
    """Play every episode of a training seed, and store nothing."""
    with Evaluator(protocol) as evaluator:
        evaluator.refuse_misfit(policy)
        return list(evaluator.evaluate(policy, seed=seed).episodes)


def _episode(row: Mapping[str, Any]) -> Episode:
    terms = {term: number(value) for term, value in (row.get("terms") or {}).items()}
    return Episode(
        row["seed"],
        number(row["return"]),
        row["length"],
        row.get("success"),
        terms,
        is_cut=bool(row.get("is_cut")),
        terminated=not row.get("truncated"),
    )
