"""Several runs of one config as one run: the seeds of all of them are replicates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rlx.runs.run import Run, Seed


@dataclass(frozen=True)
class RunPool(Run):
    """The seeds of several runs under the name of the first. If a seed occurs twice, the earlier training counts.

    The pool has an identity of its own, so its looks are not those of its first run.
    """

    members: tuple[Run, ...] = ()

    @cached_property
    def metadata(self) -> dict[str, Any]:
        identity = self.members[0].metadata
        return {**identity, "id": f"pool:{identity.get('id', self.name)}"}

    @cached_property
    def seeds(self) -> tuple[Seed, ...]:
        first: dict[int, Seed] = {}
        every_seed = [seed for member in self.members for seed in member.seeds]
        for seed in sorted(every_seed, key=_started):
            first.setdefault(seed.number, seed)
        return tuple(first[number] for number in sorted(first))

    @property
    def repeated(self) -> int:
        """How many trainings are left out because an earlier one has the same seed."""
        return sum(len(member.seeds) for member in self.members) - len(self.seeds)

    def evaluations(self) -> list[dict[str, Any]]:
        """Return the evaluations of the seeds that count."""
        owners = {seed.number: seed.folder.parent for seed in self.seeds}
        documents = []
        for member in self.members:
            documents += [
                document for document in member.evaluations() if owners.get(document.get("seed", -1)) == member.path
            ]
        return documents


def _started(seed: Seed) -> float:
    if not seed.attempts:
        return math.inf
    return float(seed.attempts[0]["time"])


def pooled(runs: Sequence[Run]) -> list[Run]:
    """Pool the runs whose configs differ only in seeds, in the order of the first run of each config."""
    groups: dict[tuple[object, object], list[Run]] = {}
    for run in {run.path: run for run in runs}.values():
        group = run.metadata.get("group_hash") or run.name
        groups.setdefault((group, run.metadata.get("backend")), []).append(run)
    pools: list[Run] = []
    for members in groups.values():
        if len(members) == 1:
            pools += members
        else:
            members.sort(key=lambda run: float(run.metadata.get("created") or 0.0))
            pools.append(RunPool(members[0].path, tuple(members)))
    return pools
