"""Wait for a run, or for every run that a pattern matches, and show the progress.

The exit code is 0 if it completed, 5 if a seed failed, was interrupted or was lost, and 1 if the time is up first. For
a job of a study, the state comes from the study's ledger, not from the run; `rlx next` prints what to do then.

Example: rlx wait cartpole_ppo_001 --timeout 300
         rlx wait cartpole_ppo_001 --notify 'notify-send "{run} is {state}"'
"""

from rlx.errors import JobFailed
from rlx.hosts.cli import attach
from rlx.hosts.cli.arguments import Args, Data, Parser, add_runs, for_each_run, render_each
from rlx.hosts.cli.notify import add_notify, notify
from rlx.hosts.cli.progress import follow
from rlx.launch import launch
from rlx.runs.run import Run
from rlx.runs.status import COMPLETED, RUNNING


def arguments(parser: Parser) -> None:
    add_runs(parser)
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="stop waiting after this long")
    add_notify(parser)


def run(args: Args) -> Data:
    return for_each_run(args.run, lambda run: _wait(run, args))


def _wait(run: Run, args: Args) -> Data:
    wait = launch.wait if args.json else follow
    run = wait(run, timeout_seconds=args.timeout)
    state = _state(run)
    if args.notify:
        notify(args.notify, run)
    codes = {COMPLETED: 0, RUNNING: 1}
    return {**attach.outcome(run), "state": state, "exit_code": codes.get(state, JobFailed.exit_code)}


def _state(run: Run) -> str:
    if not run.metadata.get("lineage"):
        return run.status
    from rlx.launch.study_jobs.reconcile import state_of

    return state_of(run)


def render(data: Data) -> str:
    return render_each(attach.render, data, between="\n\n")
