"""Stop a run, or every active run that a pattern matches.

The seeds save `latest`, then rlx ends the whole process group (TERM, then KILL).

A run that waits in a scheduler's queue is cancelled there.

Example: rlx stop cartpole_ppo_001
         rlx stop 'cartpole_*'
"""

from rlx.errors import UsageError
from rlx.hosts.cli import attach
from rlx.hosts.cli.arguments import Args, Data, add_runs, find_runs, render_each
from rlx.launch import launch

arguments = add_runs


def run(args: Args) -> Data:
    runs = find_runs([args.run])
    active = [run for run in runs if launch.is_active(run)]
    if not active and len(runs) > 1:
        raise UsageError(f"none of the {len(runs)} runs that `{args.run}` matches is running", hint="rlx ls")
    if not active:
        raise UsageError(f"{runs[0].name} is not running: {runs[0].status}", hint=f"rlx info {runs[0].name}")
    answers = [attach.outcome(launch.stop(run)) for run in active]
    if len(runs) == 1:
        return answers[0]
    return {"runs": answers}


def render(data: Data) -> str:
    return render_each(attach.render, data, between="\n\n")
