"""Write a report that can be mailed: one HTML file about runs, a study, a sweep or a lab.

The file opens without a network. The answer comes first: what was asked, what was found, how sure that is, what it
cost, and what did not work. Then follow curves, scores, findings, films, replays, config and provenance. Several runs
are compared with the first. For a study, every number is recomputed from its evidence. Films and replays are left out
if they are too large together.

Example: rlx report cartpole_ppo_001 cartpole_ppo_002 --html report.html
         rlx report my_study --html study.html
         rlx report cartpole_sweep_001 --html sweep.html
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlx.errors import NotFound, UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser
from rlx.hosts.cli.format import size
from rlx.hosts.cli.output import labelled
from rlx.runs import project


def arguments(parser: Parser) -> None:
    subjects = "runs, patterns such as 'ppo_*', or one study, sweep or lab"
    parser.add_argument("subjects", nargs="+", metavar="RUN|STUDY|SWEEP|LAB", help=subjects)
    parser.add_argument("--html", type=Path, required=True, metavar="FILE", help="the file to write")


def run(args: Args) -> Data:
    from rlx import files

    if args.html.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--html {args.html}: a report is an HTML page", hint="end the name in .html")
    kind, names, page = _page(args.subjects)
    with files.replacing(args.html, option="--html") as temporary:
        temporary.write_bytes(page.encode("utf-8", "replace"))
    return {"kind": kind, "subjects": names, "file": str(args.html), "bytes": args.html.stat().st_size}


def _page(subjects: list[str]) -> tuple[str, list[str], str]:
    """Return what the subjects are, their full names, and the page about them."""
    study = _study(subjects)
    if study is not None:
        from rlx.hosts.ui.report_page import study_report

        return "study", [study.full_name], study_report(study)
    from rlx.hosts.cli.arguments import find_runs
    from rlx.hosts.ui.curve_data import CurveData
    from rlx.hosts.ui.lab_page import find_lab, is_lab
    from rlx.hosts.ui.report_page import lab_report, runs_report, sweep_report
    from rlx.hosts.ui.sweep_page import read_sweeps

    root = project.root()
    if len(subjects) == 1 and is_lab(root) and subjects[0] == find_lab(root).name:
        return "lab", subjects, lab_report(root)
    data = CurveData(root)
    if len(subjects) == 1 and subjects[0] in [row["sweep"] for row in read_sweeps()]:
        return "sweep", subjects, sweep_report(data, subjects[0])
    names = [run.name for run in find_runs(subjects)]
    return "runs", names, runs_report(data, names)


def _study(subjects: list[str]) -> Any:
    """Return the study that a single subject names, unless a run has that name."""
    from rlx.runs.run import is_run_folder
    from rlx.study.study_folder import find_study

    root = project.root()
    if len(subjects) > 1 or is_run_folder(project.runs_folder(root) / subjects[0]):
        return None
    try:
        return find_study(root, subjects[0])
    except NotFound:
        return None


def render(data: Data) -> str:
    return labelled({
        "report": data["file"],
        "about": ", ".join(data["subjects"]),
        "size": size(data["bytes"]),
    })  # fmt: skip
