"""Write a study's report: a picture of its progress, then every candidate, including negative results.

Every number links to the file that it comes from, and `rlx study verify` recomputes them all. If a candidate was
confirmed, rlx also writes a patch for the repository and prints the commands that apply it.

Example: rlx study report
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlx.errors import EvidenceInvalid
from rlx.hosts.cli.arguments import Args, Data, add_study, find_study
from rlx.hosts.cli.next import candidate_table
from rlx.hosts.cli.output import exit_code_if, labelled

if TYPE_CHECKING:
    from rlx.hosts.plots.curves import Curves
    from rlx.study.study_folder import Study

arguments = add_study


def run(args: Args) -> Data:
    return write_report(find_study(args.study))


def write_report(study: Study) -> Data:
    """Write a study's report and its picture, and return the report's data."""
    from rlx.hosts.plots.study_progress import draw
    from rlx.loop.study.write_report import report

    data = report(study)
    data["exit_code"] = exit_code_if(data["problems"], EvidenceInvalid)
    metric = data["metric"]
    if data["direction"] == "minimize":
        metric += " (lower is better)"
    title = f"{data['study']}: {data['outcome']}"
    picture = study.folder / "report.png"
    draw(data["rows"], picture, metric=metric, head=data["head"], incumbent=data["incumbent"], title=title)
    _draw_curves(study, data["curves"])
    return data


def learning_curves(study: Study, shown: Data) -> list[Curves]:
    """Return how both sides learned; nothing if a run of theirs is gone."""
    from rlx.hosts.plots.curves import curves, pooled
    from rlx.runs.run import Run

    lines = []
    for name, runs in shown["runs"].items():
        side = pooled([curves(Run(study.root / "runs" / run), shown["metric"], axis="steps") for run in runs])
        lines.append(replace(side, name=name))
    return lines


def _draw_curves(study: Study, shown: Data) -> None:
    """Draw how both sides learned, one thin line per seed."""
    lines = learning_curves(study, shown)
    if not lines:
        return
    from rlx.hosts.plots.curves import draw
    from rlx.loop.study.write_report import CURVES

    out = study.folder / CURVES
    draw(lines, metric=shown["metric"], axis="steps", out=out, with_seeds=True, with_band=False)


def render(data: Data) -> str:
    fields = labelled({
        "NOT sound": data["problems"],
        "warning": data["warnings"],
        "spent": f"{data['spent']['seeds']} seeds, {data['spent']['seconds'] / 3600:.2g} hours",
        "evidence": f"{data['level']}; approval: {data['approval']}; enforced: {data['enforced']}",
        "report": data["file"],
        "picture": data["picture"],
        "take over": data["handover"],
        "next": data["command"],
    })  # fmt: skip
    blocks = [data["outcome"], candidate_table(data["candidates"]), fields]
    return "\n\n".join(filter(None, blocks))
