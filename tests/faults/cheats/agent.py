"""Somebody who types, edits files and does not play fair, in a project with an approved study."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.lab import Lab


@dataclass(frozen=True)
class Agent(Lab):
    """Whoever cheats, and what the study's files say about it."""

    @property
    def folder(self) -> Path:
        return self.study.folder

    def rows(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        bodies = [json.loads(json.loads(line)["body"]) for line in self._ledger()]
        return [one for one in bodies if one["event"] == event and fields.items() <= one.items()]

    def _ledger(self) -> list[str]:
        return (self.folder / "ledger.jsonl").read_text().splitlines()

    def proposes(self, hypothesis: str, *, kind: str = "reward engineering") -> tuple[str, Path]:
        """Propose a change of code; return its id and its worktree."""
        answer = self.types(
            "propose", "--kind", kind, "--hypothesis", hypothesis,
            "--record", "reflection=the reward is sparse", "--record", "reason=it should guide",
        )  # fmt: skip
        return answer["candidate"], Path(answer["worktree"])

    def is_refused(self, identity: str) -> str:
        """Check a candidate that must not pass; return the reasons, which are one new row of the ledger."""
        told = self.types("check", "candidate", identity, code=4)
        (row,) = self.rows("refused", candidate=identity, action="check")
        assert [one["says"] for one in row["reasons"]] == [one["says"] for one in told["reasons"]]
        return " ".join(f"{one['code']}: {one['says']}" for one in row["reasons"])

    def launches(self, identity: str, *, seeds: int = 1) -> str:
        plan = self.types("check", "candidate", identity)["plan"]
        return str(self.types("launch", identity, "--plan", plan, "--seeds", str(seeds))["run"])

    def ends(self, run: str, *, code: int = 0) -> dict[str, Any]:
        """Wait for a job and return the row that says how it ended."""
        self.types("wait", run, "--timeout", "120", code=code)
        (started,) = self.rows("started", run=run)
        (ended,) = self.rows("ended", job=started["job"])
        return ended

    def evidence(self, identity: str) -> list[dict[str, Any]]:
        """Have a candidate judged, and return the evaluator's documents of it."""
        self.types("verdict", identity)
        rows = self.rows("evaluated", candidate=identity)
        return [json.loads((self.folder / row["file"]).read_text()) for row in rows]
