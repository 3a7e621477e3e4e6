"""A plan of another experiment tool. It holds proposals only: approvals are counted and left behind."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlx import files
from rlx.errors import ConfigError, RlxError

LARGEST_FILE = 2 * 2**20
MOST_FILES = 500
_APPROVES = re.compile(r"approv|confirm|training_allowed|authori[sz]", re.I)


@dataclass
class PlannedCandidate:
    """A change that was proposed or tried there."""

    name: str
    kind: str = ""
    hypothesis: str = ""
    changes: dict[str, Any] = field(default_factory=dict)
    status: str = ""


@dataclass
class PlannedStudy:
    """A campaign: what decides, what may change, what it may cost, and its candidates."""

    name: str
    metric: str = ""
    is_minimized: bool = False
    guardrails: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    seeds: int | None = None
    hours: float | None = None
    candidates: list[PlannedCandidate] = field(default_factory=list)
    ledger: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class PlannedTask:
    """A problem: its mission, and the commands as they were written there."""

    name: str
    mission: str = ""
    train: str = ""
    eval: str = ""
    prefix: str = ""
    studies: list[PlannedStudy] = field(default_factory=list)


@dataclass
class ForeignPlan:
    """Everything that a tool planned in one repository."""

    format: str
    tasks: list[PlannedTask] = field(default_factory=list)
    approvals: int = 0
    notes: list[str] = field(default_factory=list)

    def document(self, path: Path) -> dict[str, Any]:
        """Return a YAML or JSON file as a mapping; count its approvals. A damaged file is empty, with a note."""
        from rlx.config import yaml_lines

        if not path.is_file() or path.is_symlink():
            return {}
        try:
            text = files.read_bytes(path, largest=LARGEST_FILE).decode("utf-8", "replace")
            data: Any = yaml_lines.parse(text, source=path.name).data
            if path.suffix == ".json":
                data = json.loads(text)
        except (RlxError, ConfigError, OSError, ValueError, RecursionError) as error:
            self.notes.append(f"{path.name} was not read: {str(error)[:120]}")
            return {}
        if not isinstance(data, dict):
            return {}
        self.approvals += count_approvals(data)
        return data

    def text(self, path: Path) -> str:
        """Return a text file; empty if it is absent, too large or a link."""
        if not path.is_file() or path.is_symlink():
            return ""
        try:
            return files.read_bytes(path, largest=LARGEST_FILE).decode("utf-8", "replace")
        except (RlxError, OSError):
            self.notes.append(f"{path.name} was not read")
            return ""

    def rows(self, path: Path) -> list[dict[str, Any]]:
        """Return the rows of a JSON-lines file, up to the first damaged one."""
        rows: list[dict[str, Any]] = []
        for number, line in enumerate(self.text(path).splitlines(), start=1):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                self.notes.append(f"{path.name}:{number} is damaged; the rows before it were read")
                break
            if isinstance(row, dict):
                self.approvals += count_approvals(row)
                rows.append(row)
        return rows


def count_approvals(document: Mapping[str, Any]) -> int:
    """Return how many entries of a document approve something."""
    count = 0
    for key, value in document.items():
        says_approved = isinstance(value, str) and value.lower().startswith(("approved", "confirmed", "authorized"))
        if (_APPROVES.search(str(key)) and value not in (None, False, "", [], {})) or says_approved:
            count += 1
        elif isinstance(value, Mapping):
            count += count_approvals(value)
    return count


def first(document: Mapping[str, Any], *paths: str) -> Any:
    """Return the first value that one of several dotted paths leads to; None if none does."""
    for path in paths:
        value: Any = document
        for part in path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value not in (None, "", [], {}):
            return value
    return None


def texts(value: Any) -> list[str]:
    """Return a text or a list of texts as a list."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [str(item) for item in value if isinstance(item, (str, int, float))]
    return []


def number(value: Any) -> float | None:
    """Return a positive number; None for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e9:
        return float(value)
    return None


def sections(markdown: str) -> Iterator[tuple[str, str]]:
    """Yield the headings of a page in small letters, with the text below each."""
    heading = ""
    lines: list[str] = []
    for line in markdown.splitlines():
        match = re.match(r"#{1,6}\s+(.+)", line)
        if match:
            yield heading, "\n".join(lines).strip()
            heading = match[1].strip().lower()
            lines = []
        else:
            lines.append(line)
    yield heading, "\n".join(lines).strip()


def files_in(folder: Path, *suffixes: str) -> list[Path]:
    """Return the files of a folder and one level below, without links."""
    if not folder.is_dir() or folder.is_symlink():
        return []
    found = [path for path in (*folder.glob("*"), *folder.glob("*/*")) if path.suffix in suffixes]
    return sorted(path for path in found if path.is_file() and not path.is_symlink())[:MOST_FILES]
