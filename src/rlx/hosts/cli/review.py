"""Review a reward before it costs a training: unbounded, sparse, out of scale, farmable, terms and weights that miss.

A file is read, never run. Of an environment (or a run's) the source is read where it is the project's, and the random
policy plays ten episodes in it.

`--trajectories RUN` also pays the episodes that RUN keeps (`rlx eval RUN --keep-trajectories`) with the function and
refuses it (exit 4) where it does not rank successes above failures. The function then runs, in a process of its own
with limits on time, memory and what it writes; it is your code, and has your rights. Its parameters are any of:
observation, action, next_observation, info, reward, terminated, truncated, step. It returns a number, or a number and a
dict of terms.

Example: rlx review rewards.py:reward
         rlx review rewards.py:reward --trajectories hopper_ppo_001
         rlx review envs/boss.py:BossFight
         rlx review hopper_ppo_001
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.errors import Refused, UsageError
from rlx.hosts.cli.findings import lines_of
from rlx.hosts.cli.words import figure
from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="FILE.py[:NAME]|ENV|RUN", help="a reward function, an environment, or a run")
    parser.add_argument("--trajectories", metavar="RUN", help="pay what this run keeps with the function")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.diagnose.review import review

    root = project.tree() if ".py" in args.target else project.root()
    if args.trajectories is not None and ".py:" not in args.target:
        raise UsageError(f"`{args.target}` does not name a function to pay trajectories with", hint="FILE.py:FUNCTION")
    data = {"target": args.target, **review(args.target, root=root).document(), "preflight": None}
    return data if args.trajectories is None else _judged(data, args.trajectories)


def _judged(data: dict[str, Any], name: str) -> dict[str, Any]:
    """Add what the function makes of a run's stored episodes."""
    from rlx.launch.preflight import preflight
    from rlx.runs.run import find

    found = find(name, root=project.root())
    judged = preflight(data["target"], found, root=project.tree())
    return {
        **data,
        "findings": [*(one.document() for one in judged.findings()), *data["findings"]],
        "preflight": {"run": found.name, **judged.document()},
        "exit_code": Refused.exit_code if judged.is_refused else 0,
    }


def render(data: dict[str, Any]) -> str:
    lines = [f"looked at: {what}" for what in data["looked_at"]] + [f"note: {note}" for note in data["notes"]]
    lines += _preflight_lines(data["preflight"]) if data["preflight"] else []
    return "\n".join([*lines, "", *lines_of(data["findings"])])


def _preflight_lines(judged: dict[str, Any]) -> list[str]:
    paid = judged["paid"]
    answer = "refused" if judged["is_refused"] else "passed"
    return [
        f"preflight: {answer} on {judged['successes']} successes and {judged['failures']} failures of {judged['run']}",
        f"a success is paid more than a failure: {judged['auc']:.0%} of pairs "
        f"(the reward they were played with: {judged['auc_before']:.0%}; at least {judged['least_auc']:.0%})",
        f"mean pay: {figure(paid['success'])} a success, {figure(paid['failure'])} a failure",
    ]
