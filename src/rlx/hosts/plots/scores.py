"""The score of each seed: its report evaluation under a protocol that all runs share, or a metric's last value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rlx.compare.stored_scores import required_scores, shared_fingerprints
from rlx.errors import EvidenceInvalid, NotFound
from rlx.files import number
from rlx.number_format import counted
from rlx.runs.run import Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]


@dataclass(frozen=True)
class Scores:
    """One run's finite scores by seed; `episodes` are the returns behind each; `missing` seeds have no finite score."""

    name: str
    seeds: Mapping[int, float]
    episodes: Mapping[int, Sequence[float]] = field(default_factory=dict)
    missing: int = 0
    metric: str = "return"
    differs: str = ""

    @property
    def values(self) -> Values:
        return np.array(list(self.seeds.values()), dtype=np.float64)

    @property
    def label(self) -> str:
        title = f"{self.name}: {self.differs}" if self.differs else self.name
        return f"{title} (n = {counted(len(self.seeds), 'seed')})"


def evaluated(runs: Sequence[Run]) -> list[Scores]:
    """Return the scores of the final policies under a protocol that all runs share."""
    shared = shared_fingerprints([required_scores(run) for run in runs], [run.own_protocol for run in runs])
    if not shared:
        names = [run.name for run in runs]
        hint = f"rlx eval {names[0]} && rlx eval {names[-1]} --like {names[0]}"
        raise EvidenceInvalid(f"{', '.join(names)} were evaluated under different protocols", hint=hint)
    return [_evaluated(run, shared[0]) for run in runs]


def _evaluated(run: Run, fingerprint: str) -> Scores:
    documents = {
        document["seed"]: document
        for document in run.evaluations()
        if document["fingerprint"] == fingerprint and document["name"] == f"seed_{document.get('seed')}_latest"
    }
    scores = {seed: number(row.get("score", row["mean"])) for seed, row in sorted(documents.items())}
    finite = {seed: score for seed, score in scores.items() if np.isfinite(score)}
    episodes = {seed: _returns(documents[seed]["episodes"]) for seed in finite}
    metric = next((str(row.get("metric") or "return") for row in documents.values()), "return")
    return Scores(run.name, finite, episodes, missing=len(run.seeds) - len(finite), metric=metric)


def _returns(episodes: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the episodes' returns without those of the scenarios."""
    return [number(episode["return"]) for episode in episodes if "scenario" not in episode]


def last_values(runs: Sequence[Run], metric: str) -> list[Scores]:
    """Return the last finite value of a metric of every seed."""
    scores = []
    for run in runs:
        series = {seed: row.values[np.isfinite(row.values)] for seed, row in run.series(metric).items()}
        values = {seed: float(finite[-1]) for seed, finite in series.items() if len(finite)}
        scores.append(Scores(run.name, values, missing=len(run.seeds) - len(values)))
    return scores


def refuse_empty(runs: Sequence[Scores]) -> None:
    """Raise if a run has nothing to draw."""
    for scores in runs:
        if not scores.seeds:
            raise NotFound(f"no seed of {scores.name} has a finite score", hint=f"rlx info {scores.name}")
