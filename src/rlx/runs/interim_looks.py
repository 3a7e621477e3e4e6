"""The log of interim looks: which pairs of runs were tested, under which protocol, on which scores; append-only.

`.rlx/looks.jsonl` has one row per look. A look is identified by its content, so repeating one adds nothing. The first
row of a pair, protocol and size is the look that counts. Not covered: someone who deletes the file can look again at
scores that were changed since then. Looks always use the first seeds trained, recorded or not.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlx import files
from rlx.errors import EvidenceInvalid

SCHEMA = 1


@dataclass(frozen=True)
class Party:
    """One run in a look: its identity, its config's group, and the scores that counted, by training seed."""

    run: str
    id: str
    group: str
    scores: Mapping[int, float]

    def document(self) -> dict[str, Any]:
        scores = {str(seed): score for seed, score in self.scores.items()}
        return {"run": self.run, "id": self.id, "group": self.group, "scores": scores}

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> Party:
        scores = {int(seed): files.number(score) for seed, score in row["scores"].items()}
        return cls(row["run"], row["id"], row["group"], scores)


@dataclass(frozen=True)
class LookRecord:
    """One look: the pair, the protocol's fingerprint, the number of seeds and the p-values."""

    baseline: Party
    candidate: Party
    fingerprint: str
    seeds: int
    above: float
    below: float
    time: float = field(default=0.0, compare=False)

    @property
    def pair(self) -> tuple[str, str]:
        return self.baseline.id, self.candidate.id

    @property
    def is_replication(self) -> bool:
        """Whether both sides trained the same config, which measures how often noise looks like a change."""
        return bool(self.baseline.group) and self.baseline.group == self.candidate.group

    @property
    def digest(self) -> str:
        """The look's identity: a hash over pair, protocol, size and both score sets."""
        scores = [sorted((seed, repr(score)) for seed, score in side.scores.items()) for side in self._sides]
        content = json.dumps([*self.pair, self.fingerprint, self.seeds, *scores])
        return files.sha256(content.encode())

    @property
    def _sides(self) -> tuple[Party, Party]:
        return self.baseline, self.candidate

    def document(self) -> dict[str, Any]:
        """Return the row that is written."""
        return {
            "schema": SCHEMA,
            "time": self.time,
            "digest": self.digest,
            "fingerprint": self.fingerprint,
            "seeds": self.seeds,
            "p": [self.above, self.below],
            "baseline": self.baseline.document(),
            "candidate": self.candidate.document(),
        }

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> LookRecord:
        above, below = map(float, row["p"])
        sides = (Party.read(row["baseline"]), Party.read(row["candidate"]))
        return cls(*sides, row["fingerprint"], int(row["seeds"]), above, below, float(row["time"]))


def path(root: Path) -> Path:
    """Return the path of a project's look log."""
    return root / ".rlx" / "looks.jsonl"


def read(root: Path) -> list[LookRecord]:
    """Return all looks of a project, oldest first."""
    try:
        return [LookRecord.read(row) for row in files.read_rows(path(root))]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hint = "move the file away: rlx then takes the looks again, on the same first seeds of each run"
        raise EvidenceInvalid(f"{path(root).relative_to(root)} is damaged: {error}", hint=hint) from None


def record(root: Path, looks: Iterable[LookRecord]) -> None:
    """Append the looks that are not in the log yet."""
    known = {look.digest for look in read(root)}
    for look in looks:
        if look.digest not in known:
            known.add(look.digest)
            path(root).parent.mkdir(parents=True, exist_ok=True)
            row = {**look.document(), "time": time.time()}
            files.append_line(path(root), files.encode(row))
