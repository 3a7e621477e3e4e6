"""Write a study's report: a picture of its progress first, then every candidate, negative results included.

Every figure is linked to the file it comes from; `rlx study verify` recomputes them all. Of what was
confirmed it writes the patch that puts it into the repository, and says the commands.

Example: rlx study report
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from rlx.hosts.cli.next import recent
from rlx.runs import project

if TYPE_CHECKING:
    from rlx.study.study import Study


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="another study than the one in use")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.study.study import find

    return written(find(project.root(), args.study))


def written(study: Study) -> dict[str, Any]:
    """Write a study's report and its picture; return what it says."""
    from rlx.hosts.plots.campaign import draw
    from rlx.loop.telling import report

    told = report(study)
    metric = told["metric"] + (" (lower is better)" if told["direction"] == "minimize" else "")
    draw(
        told["rows"], study.folder / "report.png", metric=metric, head=told["head"],
        incumbent=told["incumbent"], title=f"{told['study']}: {told['outcome']}",
    )  # fmt: skip
    return told


def render(data: dict[str, Any]) -> str:
    lines = [data["outcome"], ""]
    if data["candidates"]:
        lines += [recent(data["candidates"]), ""]
    lines += [f"warning: {one}" for one in data["warnings"]]
    lines += [
        f"spent: {data['spent']['seeds']} seeds, {data['spent']['seconds'] / 3600:.2g} hours",
        f"evidence: {data['level']}; approval: {data['approval']}; enforced: {data['enforced']}",
        f"report: {data['file']}",
        f"picture: {data['picture']}",
        *(f"take over: {one}" for one in data["handover"]),
    ]
    return "\n".join([*lines, f"next: {data['command']}"])
