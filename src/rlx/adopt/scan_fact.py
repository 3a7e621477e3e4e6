"""The results of a scan: facts with their place and confidence, defects, and questions for a person."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Confidence = Literal["high", "medium", "low"]
ORDER: dict[Confidence, int] = {"high": 0, "medium": 1, "low": 2}


@dataclass(frozen=True)
class ScanFact:
    """One fact of a repository: its kind, name and value, and the place it was read from."""

    kind: str
    name: str
    file: str
    line: int
    confidence: Confidence = "high"
    value: Any = None
    detail: str = ""
    is_of_framework: bool = False
    """Whether the framework is known to do this by itself: no line of the repository says so."""

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        document = asdict(self)
        del document["is_of_framework"]  # `detail` says it
        return document


@dataclass(frozen=True)
class Defect:
    """A problem that makes evidence from this repository wrong or lost, and why it matters."""

    code: str
    message: str
    why: str
    file: str
    line: int
    confidence: Confidence = "high"

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return asdict(self)


@dataclass(frozen=True)
class OpenQuestion:
    """A point that the scan cannot decide, and the key of task.yaml that holds the answer."""

    key: str
    text: str

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return asdict(self)


@dataclass
class ScanFacts:
    """All facts of a repository, by kind."""

    found: list[ScanFact] = field(default_factory=list)

    def of(self, kind: str) -> list[ScanFact]:
        """Return the facts of a kind, the most confident ones first."""
        return sorted((fact for fact in self.found if fact.kind == kind), key=lambda fact: ORDER[fact.confidence])

    def first(self, kind: str) -> ScanFact | None:
        return next(iter(self.of(kind)), None)

    def names(self, kind: str) -> list[str]:
        return list(dict.fromkeys(fact.name for fact in self.of(kind)))
