"""List what was tried, in order: commit, budget, seeds, score, status, description; negative results included.

The score is the mean over the seeds that were raced, and `seeds` is how many; a claim is told apart, on other
seeds and episodes, by its effect against the baseline.

Example: rlx study log
         rlx study log --tsv > results.tsv
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.hosts.cli.output import table
from rlx.hosts.cli.words import figure
from rlx.runs import project

COLUMNS = ("commit", "candidate", "budget", "seeds", "score", "status", "description", "claim")
SHOWN = ("commit", "candidate", "budget", "seeds", "score", "status", "claim", "description")
"""The columns as people see them: a description is as long as a line."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="another study than the one in use")
    parser.add_argument("--tsv", action="store_true", help="tab-separated, one line each, for other tools")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.loop.telling import log
    from rlx.study.study import find

    return {**log(find(project.root(), args.study)), "is_tsv": args.tsv}


def render(data: dict[str, Any]) -> str:
    names = COLUMNS if data["is_tsv"] else ["standing" if name == "status" else name for name in SHOWN]
    cells = [[_cell(row[name]) for name in names] for row in data["rows"]]
    if data["is_tsv"]:
        return "\n".join("\t".join(line) for line in [list(COLUMNS), *cells])
    return "\n".join([table(SHOWN, cells, right=(3, 4)), f"next: rlx study report {data['study']}"])


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return figure(value) if isinstance(value, float) else " ".join(str(value).split())
