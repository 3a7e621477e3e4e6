"""Check a candidate of a study: its records, its keys, and its real diff against the scope; every reason at once.

What is sound gets a hash over contract, candidate and diff: `rlx launch` must name it. Exit code 4 where it is refused.

Example: rlx check candidate c001
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("candidate", help="a candidate's id")
    parser.add_argument("--study", metavar="STUDY", help="another study than the one in use")
    parser.add_argument("--dry-run", action="store_true", help="check, and write nothing into the ledger")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.launch.door import check
    from rlx.loop.notes import beside
    from rlx.loop.proceed import next_of
    from rlx.study.study import find

    study = find(project.root(), args.study)
    examined = check(study, args.candidate, is_dry=args.dry_run)
    return {
        "candidate": args.candidate,
        "ok": True,
        "plan": examined.plan,
        "changes": dict(examined.candidate.changes),
        "files": [change.path for change in examined.changes],
        "lines": examined.lines,
        "notes": list(filter(None, [beside(study, args.candidate, study.state().head)])),
        "command": next_of(study, args.candidate).command,
    }


def render(data: dict[str, Any]) -> str:
    lines = [f"{data['candidate']}: within the contract", f"plan: {data['plan']}"]
    lines += [f"key: {key} = {value}" for key, value in data["changes"].items()]
    lines += [f"file: {name}" for name in data["files"]]
    if data["files"]:
        lines.append(f"changed lines: {data['lines']}")
    lines += [f"note: {one}" for one in data["notes"]]
    return "\n".join([*lines, f"next: {data['command']}"])
