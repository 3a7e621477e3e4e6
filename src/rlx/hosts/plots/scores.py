"""What each seed of a run scores: its report evaluation, under a protocol all runs share, or a metric's last value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rlx.compare.reports import reports_of, shared_fingerprints
from rlx.errors import EvidenceInvalid, NotFound
from rlx.files import number
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

    @property
    def values(self) -> Values:
        return np.array(list(self.seeds.values()), dtype=np.float64)

    @property
    def label(self) -> str:
        return f"{self.name} (n = {len(self.seeds)} {'seed' if len(self.seeds) == 1 else 'seeds'})"


def evaluated(runs: Sequence[Run]) -> list[Scores]:
    """Return the scores of final policies under the protocol that all runs were evaluated by."""
    shared = shared_fingerprints([reports_of(run) for run in runs], [run.own_protocol for run in runs])
    if not shared:
        first, *others = [run.name for run in runs]
        raise EvidenceInvalid(
            f"{', '.join([first, *others])} were evaluated under different protocols",
            hint=f"rlx eval {first} && rlx eval {others[-1]} --like {first}",
        )
    return [_evaluated(run, shared[0]) for run in runs]


def _evaluated(run: Run, fingerprint: str) -> Scores:
    found = {
        document["seed"]: document
        for document in run.evaluations()
        if document["fingerprint"] == fingerprint and document["name"] == f"seed_{document.get('seed')}_latest"
    }
    scores = {seed: number(of.get("score", of["mean"])) for seed, of in sorted(found.items())}
    finite = {seed: score for seed, score in scores.items() if np.isfinite(score)}
    return Scores(
        run.name,
        finite,
        {seed: _returns(found[seed]["episodes"]) for seed in finite},
        missing=len(run.seeds) - len(finite),
        metric=next((str(of.get("metric") or "return") for of in found.values()), "return"),
    )


def _returns(episodes: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return what the episodes of the evaluation itself returned, without those of its scenarios."""
    return [number(episode["return"]) for episode in episodes if "scenario" not in episode]


def last_values(runs: Sequence[Run], metric: str) -> list[Scores]:
    """Return the last finite value of a metric of every seed."""
    found = []
    for run in runs:
        series = {seed: one.values[np.isfinite(one.values)] for seed, one in run.series(metric).items()}
        values = {seed: float(finite[-1]) for seed, finite in series.items() if len(finite)}
        found.append(Scores(run.name, values, missing=len(run.seeds) - len(values)))
    return found


def refuse_empty(every: Sequence[Scores]) -> None:
    """Raise where a run has nothing to draw."""
    for one in every:
        if not one.seeds:
            raise NotFound(f"no seed of {one.name} has a finite score", hint=f"rlx info {one.name}")
