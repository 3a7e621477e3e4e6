"""Delete runs, with everything in their folders. Asks first; off a terminal it wants --yes.

A study's runs are its evidence, and stay.

Example: rlx rm cartpole_ppo_001 cartpole_ppo_002 --yes
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from rlx.errors import Interrupted, Refused, UsageError
from rlx.hosts.cli import words
from rlx.hosts.cli.output import say
from rlx.runs import project
from rlx.runs.run import Run, find


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run's whole name")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.runs import store

    doomed = list({found.path: found for found in map(_whole_name, args.runs)}.values())
    for found in doomed:
        store.refuse_running(found)
        _refuse_evidence(found)
    sizes = [_size(found) for found in doomed]
    if not args.yes:
        _ask(doomed, sum(sizes))
    for found in doomed:
        store.delete(found)
    return {"deleted": [found.name for found in doomed], "bytes": sum(sizes)}


def _whole_name(reference: str) -> Run:
    """Find a run, but not by a part of its name: what is deleted is named in full."""
    found = find(reference, root=project.root())
    if found.name != os.path.basename(os.path.normpath(reference)):  # noqa: PTH119
        raise UsageError(f"`{reference}` is not a run's whole name", hint=f"rlx rm {found.name}")
    return found


def _refuse_evidence(found: Run) -> None:
    """Raise where a study's ledger names the run: its scores, and what it has spent, rest on it."""
    from rlx.study.study import studies

    for study in studies(project.root()):
        if any(job.run == found.name for job in study.state().jobs.values()):
            says = f"{found.name} is evidence of the study {study.name}: its ledger names it"
            raise Refused(says, hint=f"rlx study log {study.name}")


def _size(found: Run) -> int:
    return sum(path.lstat().st_size for path in found.path.rglob("*") if not path.is_dir())


def _ask(doomed: list[Run], size: int) -> None:
    names = " ".join(found.name for found in doomed)
    if not (sys.stdin and sys.stdin.isatty()):
        raise UsageError(f"nobody to ask whether to delete {names}", hint=f"rlx rm {names} --yes")
    say(f"delete {names} ({words.size(size)})? [y/N] ")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Interrupted("nothing was deleted")


def render(data: dict[str, Any]) -> str:
    return f"deleted {' '.join(data['deleted'])} ({words.size(data['bytes'])})"
