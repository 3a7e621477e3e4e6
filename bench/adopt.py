"""Measure `rlx adopt`: precision and recall of every field against a hand-made truth, and the seconds per repository.

The repositories are public and not part of this project. Clone those that `bench/adopt_truth.yaml` names, at the
commits it names, into one folder outside the project. Each has its own name there, such as FOLDER/cleanrl.

Usage: python bench/adopt.py FOLDER [--errors]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from rlx.adopt.scan import Scan, scan

TRUTH = Path(__file__).with_name("adopt_truth.yaml")
LEAST_PRECISION = 0.95
LEAST_RECALL = 0.8
LEAST_LITERAL = 4
"""A pattern must spell at least this many characters to stand for the names that it matches."""


@dataclass
class Count:
    """Right, wrong and missed answers of one field."""

    right: int = 0
    wrong: list[str] = field(default_factory=list)
    found: int = 0
    missed: list[str] = field(default_factory=list)

    def add(self, other: Count) -> None:
        self.right += other.right
        self.wrong += other.wrong
        self.found += other.found
        self.missed += other.missed

    @property
    def precision(self) -> float:
        return self.right / max(self.right + len(self.wrong), 1)

    @property
    def recall(self) -> float:
        return self.found / max(self.found + len(self.missed), 1)


def flat(names: Any) -> list[str]:
    """Return a list of names whose shared parts are lists of their own."""
    flattened: list[str] = []
    for name in names or []:
        if isinstance(name, list):
            flattened += name
        else:
            flattened.append(str(name))
    return flattened


def fits(one: str, other: str) -> bool:
    """Return whether two names are the same, or one is a pattern that spells enough of the other."""
    if one == other:
        return True
    for pattern, name in ((one, other), (other, one)):
        if "*" in pattern and len(pattern.replace("*", "")) >= LEAST_LITERAL and fnmatchcase(name, pattern):
            return True
    return False


def answers(result: Scan, kind: str) -> list[str]:
    names = result.facts.names(kind)
    if kind == "seed":
        names = [name.lstrip("-").rstrip("=") for name in names]
    return names


def judged(result: Scan, kind: str, must: list[str], may: list[str]) -> Count:
    """Compare the answers of one field with the truth."""
    count = Count()
    given = answers(result, kind)
    for name in given:
        if any(fits(name, truth) for truth in must):
            count.right += 1
        elif not any(name == truth or fnmatchcase(name, truth) for truth in may):
            count.wrong.append(name)
    for truth in must:
        if any(fits(name, truth) for name in given):
            count.found += 1
        else:
            count.missed.append(truth)
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--errors", action="store_true", help="also print the wrong and the missed answers")
    parser.add_argument(
        "--half",
        choices=("tune", "test", "fresh", "unseen", "last", "after", "wide", "next", "third", "fourth", "fifth"),
        help="only this half",
    )
    args = parser.parse_args()
    truth = yaml.safe_load(TRUTH.read_text())
    totals: dict[tuple[str, str], Count] = {}
    for repository in truth["repositories"]:
        name = repository["name"].rpartition("/")[2]
        if args.half not in (None, repository["half"]):
            continue
        if not (args.folder / name).is_dir():
            print(f"{name}: not in {args.folder}", file=sys.stderr)
            continue
        result = scan(args.folder / name)
        print(f"{repository['half']:5} {name:28} {result.files:5} files {result.seconds:6.2f} s  {result.profile.name}")
        for kind in truth["fields"]:
            if kind not in repository["must"]:
                continue
            may = flat(repository.get("may", {}).get(kind))
            count = judged(result, kind, flat(repository["must"].get(kind)), may)
            totals.setdefault((repository["half"], kind), Count()).add(count)
            if args.errors and (count.wrong or count.missed):
                print(f"      {kind}: wrong {count.wrong}, missed {count.missed}")
    return report(totals)


def report(totals: dict[tuple[str, str], Count]) -> int:
    """Print the table; return 1 if a half that was not tuned on misses a limit."""
    print(f"\n{'half':5} {'field':14} {'precision':>18} {'recall':>18}")
    is_low = False
    for (half, kind), count in totals.items():
        precision = f"{count.precision:.3f} ({count.right}/{count.right + len(count.wrong)})"
        recall = f"{count.recall:.3f} ({count.found}/{count.found + len(count.missed)})"
        mark = ""
        if (count.right or count.wrong) and count.precision < LEAST_PRECISION:
            mark = "low"
        if (count.found or count.missed) and count.recall < LEAST_RECALL:
            mark = "low"
        is_low = is_low or (half != "tune" and bool(mark))
        print(f"{half:5} {kind:14} {precision:>18} {recall:>18} {mark}")
    return int(is_low)


if __name__ == "__main__":
    raise SystemExit(main())
