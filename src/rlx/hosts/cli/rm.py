"""Delete runs with everything in their folders. rlx asks first; without a terminal it needs --yes.

rlx does not delete the runs of a study: they are its evidence.

Example: rlx rm cartpole_ppo_001 cartpole_ppo_002 --yes
"""

import os
import sys

from rlx.errors import Interrupted, Refused, UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser, find_run, find_runs
from rlx.hosts.cli.format import size
from rlx.hosts.cli.output import say
from rlx.runs import project
from rlx.runs.run import JOBS, Run, is_pattern


def arguments(parser: Parser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="the whole name of a run, or a pattern: 'old_*'")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(args: Args) -> Data:
    from rlx.runs import store

    runs = list({run.path: run for reference in args.runs for run in _chosen(reference)}.values())
    for run in runs:
        store.refuse_training(run, notice=say)
        _refuse_queued(run)
    _refuse_evidence(runs)
    names = [run.name for run in runs]
    files = [path for run in runs for path in run.path.rglob("*") if not path.is_dir()]
    total = sum(path.lstat().st_size for path in files)
    if not args.yes:
        _ask(" ".join(names), total)
    for run in runs:
        store.delete(run)
    return {"deleted": names, "bytes": total}


def _chosen(reference: str) -> list[Run]:
    """Find the runs that a pattern matches, or one run, but not by a part of its name."""
    if is_pattern(reference):
        return find_runs([reference])
    run = find_run(reference)
    if run.name != os.path.basename(os.path.normpath(reference)):  # noqa: PTH119
        raise UsageError(f"`{reference}` is not the whole name of a run", hint=f"rlx rm {run.name}")
    return [run]


def _refuse_queued(run: Run) -> None:
    """Raise if an executor has jobs of the run: they would fail without their folder."""
    from rlx.launch import launch

    if (run.path / JOBS).exists() and launch.is_active(run):
        raise Refused(f"{run.name} is in its executor's queue", hint=f"stop it first: rlx stop {run.name}")


def _refuse_evidence(runs: list[Run]) -> None:
    """Raise if a study's ledger names one of the runs: the study's scores and spending depend on it."""
    from rlx.study.study_folder import list_studies

    for study in list_studies(project.root()):
        named = {job.run for job in study.state().jobs.values()}
        for run in runs:
            if run.name not in named:
                continue
            message = f"{run.name} is evidence of the study {study.name}: its ledger names it"
            raise Refused(message, hint=f"rlx study log {study.name}")


def _ask(names: str, total: int) -> None:
    if not (sys.stdin and sys.stdin.isatty()):
        raise UsageError(f"cannot ask without a terminal whether to delete {names}", hint=f"rlx rm {names} --yes")
    say(f"delete {names} ({size(total)})? [y/N] ")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Interrupted("nothing was deleted")


def render(data: Data) -> str:
    return f"deleted {' '.join(data['deleted'])} ({size(data['bytes'])})"
