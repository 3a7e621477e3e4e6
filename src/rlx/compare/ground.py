"""The code and versions that a training started now would run, and what of them a run's seeds did not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from rlx.compare.code import Codes
from rlx.config.diff import diff
from rlx.errors import EvidenceInvalid
from rlx.evaluate.sources import edited
from rlx.runs import provenance
from rlx.runs.run import Run


class Ground:
    """What a project is trained with now."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.codes = Codes(root)

    @cached_property
    def _now(self) -> dict[str, Any]:
        return {"git": provenance.git_state(self.root), "code_sha256": provenance.code_hash(self.root)}

    @cached_property
    def _versions(self) -> dict[str, str]:
        return provenance.versions()

    def changes(self, run: Run) -> list[str]:
        """Return what is other now than when the run's seeds were trained."""
        attempts = [attempt for seed in run.seeds for attempt in seed.attempts]
        return list(dict.fromkeys(change for attempt in attempts for change in self._since(attempt, run)))

    def _since(self, attempt: Mapping[str, Any], run: Run) -> Iterator[str]:
        then, now = self.codes.name(attempt), self.codes.name(self._now)
        if then != now:
            which = self.codes.changed(then, now) or ", ".join(edited(run.evaluations(), root=self.root))
            yield f"the project's code ({then} → {now}{': ' if which else ''}{which})"
        for one in diff(attempt.get("versions") or {}, self._versions):
            yield f"{one.key} {one.before} → {one.after}"

    def refuse_changed(self, run: Run, *, again: str) -> None:
        """Raise where further seeds of a run would not be replicates of those it has; `again` trains all anew."""
        changes = self.changes(run)
        if changes:
            why = f"{run.name} cannot be trained further: {', '.join(changes)} changed since"
            raise EvidenceInvalid(why, hint=f"train anew with what there is now: {again}")
