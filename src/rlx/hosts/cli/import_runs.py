"""Import finished runs of other tools, so that `ls`, `plot`, `compare --metric`, `analyze` and `diagnose` read them.

Trainings that differ only in the seed become one run with several seeds. The metrics keep their names and also get
rlx's names if a library's dialect is known. rlx never trains, resumes or evaluates an imported run. Importing the same
content again changes nothing. A torn or damaged file gives the rows before the damage, and a note.

`.rlxp` and `.autorl` folders become drafts: a task, an unapproved study and candidate files, without approvals.

Example: rlx import ../cleanrl/runs
         rlx import wandb/offline-run-20260101_120000-ab12cd34
         rlx import mlruns --as mlflow
         rlx import .rlxp
"""

from pathlib import Path

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser
from rlx.hosts.cli.format import counted
from rlx.hosts.cli.output import labelled, say
from rlx.plugins import IMPORTERS
from rlx.runs import project

PLAN_FORMATS = ("rlxp", "autorl")


def arguments(parser: Parser) -> None:
    parser.add_argument("path", type=Path, metavar="PATH", help="a file or a folder with runs")
    parser.add_argument(
        "--as", dest="format", choices=(*IMPORTERS, *PLAN_FORMATS), help="the format (default: rlx detects it)"
    )


def run(args: Args) -> Data:
    from rlx.adopt.import_runs import import_path
    from rlx.loop.adopt.import_plans import plan_format

    plans = args.format or plan_format(args.path)
    if plans in PLAN_FORMATS:
        return _plans(args.path, plans)
    report = import_path(args.path, root=project.root(), format_name=args.format, progress=say)
    if report.empty and not report.created and not report.present:
        hint = "a table needs a header and columns of numbers, such as step,return"
        raise UsageError(f"{args.path} has no metrics that rlx can read (format {report.format})", hint=hint)
    return {
        "format": report.format,
        "created": report.created,
        "present": report.present,
        "seeds": report.seeds,
        "empty": report.empty,
        "notes": report.notes,
    }


def _plans(path: Path, name: str) -> Data:
    from rlx.loop.adopt.import_plans import import_plans

    report = import_plans(path, root=project.root(), format_name=name)
    return {
        "format": report.format,
        "tasks": report.tasks,
        "studies": report.studies,
        "candidates": report.candidates,
        "present": report.present,
        "approvals_left_behind": report.approvals,
        "notes": report.notes,
    }


def _render_plans(data: Data) -> str:
    approvals = ""
    if data["approvals_left_behind"]:
        counted_approvals = counted(data["approvals_left_behind"], "approval")
        approvals = f"{counted_approvals} not imported: a person approves the study here"
    following = ""
    if data["tasks"]:
        following = f"rlx task show {data['tasks'][0]}"
    return labelled({
        "format": data["format"],
        "task": data["tasks"][:20],
        "study": data["studies"][:20],
        "candidate": data["candidates"][:20],
        "already here": data["present"][:20],
        "approvals": approvals,
        "note": data["notes"][:20],
        "next": following,
    })  # fmt: skip


def render(data: Data) -> str:
    if data["format"] in PLAN_FORMATS:
        return _render_plans(data)
    following = ""
    made = f"{counted(len(data['created']), 'run')} with {counted(data['seeds'], 'seed')}"
    names = [*data["created"], *data["present"]]
    if names:
        following = f"rlx plot {names[0]}"
    return labelled({
        "format": data["format"],
        "created": [made, *data["created"][:20]],
        "already here": data["present"][:20],
        "without metrics": data["empty"][:20],
        "note": data["notes"][:20],
        "next": following,
    })  # fmt: skip
