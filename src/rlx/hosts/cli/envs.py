"""List environments: Gymnasium's registry and this project's own (envs/*.py), with spaces, horizon and threshold.

PATTERN is a part of an id or a glob, without regard to case. Only the newest version of each is shown, unless --all.

Example: rlx envs cartpole
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.hosts.cli.output import table
from rlx.hosts.cli.words import figure


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("pattern", nargs="?", metavar="PATTERN", help="a part of an id, or a glob such as 'Half*'")
    parser.add_argument("--all", action="store_true", help="older versions too")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Return the matching environments."""
    from dataclasses import asdict

    from rlx.envs.registry import listing
    from rlx.runs import project

    rows = listing(args.pattern, root=project.tree(), include_old=args.all)
    in_project = (project.root() / project.MARKER).is_file()
    return {"envs": [asdict(row) for row in rows], "total": len(rows), "in_project": in_project}


def render(data: dict[str, Any]) -> str:
    """Lay out those that can be made; then say of the others what they lack."""
    usable = [env for env in data["envs"] if env["problem"] is None]
    blocks = []
    if usable:
        header = ("env", "observation", "action", "horizon", "threshold")
        blocks.append(table(header, [_cells(env) for env in usable], right=(3, 4)))
    blocks += _problems([env for env in data["envs"] if env["problem"] is not None])
    if usable:
        command = "rlx check env" if data["in_project"] else "rlx init demo --env"
        blocks.append(f"next: {command} {usable[0]['id']}")
    return "\n\n".join(blocks)


def _cells(env: dict[str, Any]) -> tuple[str, str, str, str, str]:
    threshold = env["threshold"]
    return (
        env["id"],
        env["observation"],
        env["action"],
        "-" if env["horizon"] is None else str(env["horizon"]),
        "-" if threshold is None else figure(threshold),
    )


def _problems(envs: list[dict[str, Any]]) -> list[str]:
    """Group what is not installed by what would install it; other problems stand alone."""
    groups: dict[str, list[str]] = {}
    lines = []
    for env in envs:
        if env["is_installed"]:
            lines.append(f"{env['id']}: {env['problem']}")
        else:
            groups.setdefault(env["hint"] or env["problem"], []).append(env["id"])
    missing = [f"not installed: {', '.join(ids)}\n  {hint}" for hint, ids in groups.items()]
    return [*missing, *(["cannot be made:\n  " + "\n  ".join(lines)] if lines else [])]
