"""Review a reward before it costs a training.

`--trajectories RUN` pays the episodes that RUN keeps (`rlx eval RUN --keep-trajectories`) with the function and refuses
it (exit 4) where it does not rank successes above failures. The function then runs, in a process of its own with limits
on time, memory and what it writes; it is your code, and has your rights. Its parameters are any of: observation,
action, next_observation, info, reward, terminated, truncated, step. It returns a number, or a number and a dict of
terms.

Example: rlx review rewards.py:reward --trajectories hopper_ppo_001
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.errors import Refused
from rlx.hosts.cli.findings import lines_of
from rlx.hosts.cli.words import figure
from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="FILE.py:FUNCTION", help="a reward function")
    parser.add_argument(
        "--trajectories", metavar="RUN", required=True, help="pay what this run keeps with the function"
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.launch.preflight import preflight
    from rlx.runs.run import find

    root = project.root()
    found = find(args.trajectories, root=root)
    judged = preflight(args.target, found, root=root)
    return {
        "target": args.target,
        "findings": [one.document() for one in judged.findings()],
        "preflight": {"run": found.name, **judged.document()},
        "exit_code": Refused.exit_code if judged.is_refused else 0,
    }


def render(data: dict[str, Any]) -> str:
    return "\n".join([*_preflight_lines(data["preflight"]), "", *lines_of(data["findings"])])


def _preflight_lines(judged: dict[str, Any]) -> list[str]:
    paid = judged["paid"]
    answer = "refused" if judged["is_refused"] else "passed"
    return [
        f"preflight: {answer} on {judged['successes']} successes and {judged['failures']} failures of {judged['run']}",
        f"a success is paid more than a failure: {judged['auc']:.0%} of pairs "
        f"(the reward they were played with: {judged['auc_before']:.0%}; at least {judged['least_auc']:.0%})",
        f"mean pay: {figure(paid['success'])} a success, {figure(paid['failure'])} a failure",
    ]
