"""Find defects of a reward before a training: unbounded, sparse, badly scaled, exploitable, useless terms and weights.

rlx reads a file and never runs it. For an environment (or the environment of a run) rlx reads its source if it is part
of the project, and plays ten episodes with the random policy.

`--trajectories RUN` also rescores the episodes that RUN stores (`rlx eval RUN --keep-trajectories`) with the function.
If the function does not rank successes above failures, rlx refuses it (exit code 4). The function then runs in its own
process, with limits on time, memory and output, and with your rights. Its parameters are any of: observation, action,
next_observation, info, reward, terminated, truncated, step. It returns a number, or a number and a dict of terms.

Example: rlx review rewards.py:reward
         rlx review rewards.py:reward --trajectories hopper_ppo_001
         rlx review envs/boss.py:BossFight
         rlx review hopper_ppo_001
"""

from rlx.errors import Refused, UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser, add_trust, find_run, obey_trust
from rlx.hosts.cli.format import figure
from rlx.hosts.cli.output import exit_code_if, labelled
from rlx.hosts.cli.render_findings import finding_lines
from rlx.runs import project


def arguments(parser: Parser) -> None:
    parser.add_argument("target", metavar="FILE.py[:NAME]|ENV|RUN", help="a reward function, an environment, or a run")
    parser.add_argument("--trajectories", metavar="RUN", help="rescore this run's stored trajectories with it")
    add_trust(parser)


def run(args: Args) -> Data:
    from rlx.diagnose.reward_review.review import review

    obey_trust(args)
    root = project.tree() if ".py" in args.target else project.root()
    if args.trajectories is not None and ".py:" not in args.target:
        message = f"`{args.target}` is not a function that could rescore trajectories"
        raise UsageError(message, hint="rlx review FILE.py:FUNCTION --trajectories RUN")
    data = {"target": args.target, **review(args.target, root=root).document(), "preflight": None}
    if args.trajectories is not None:
        data |= _rescored(data, args.trajectories)
    return data


def _rescored(data: Data, name: str) -> Data:
    """Return the findings with those of the function on a run's stored episodes."""
    from rlx.launch.reward_preflight import preflight

    run = find_run(name)
    ranking = preflight(data["target"], run, root=project.tree())
    return {
        "findings": [*(finding.document() for finding in ranking.findings()), *data["findings"]],
        "preflight": {"run": run.name, **ranking.document()},
        "exit_code": exit_code_if(ranking.is_refused, Refused),
    }


def render(data: Data) -> str:
    head = labelled({"looked at": data["looked_at"], "note": data["notes"], **_ranking(data["preflight"])})
    return "\n".join([head, "", *finding_lines(data["findings"])])


def _ranking(ranking: Data | None) -> dict[str, str]:
    if ranking is None:
        return {}
    answer = "refused" if ranking["is_refused"] else "passed"
    episodes = f"{ranking['successes']} successes and {ranking['failures']} failures of {ranking['run']}"
    before = f"the stored reward: {ranking['auc_before']:.0%}; required: {ranking['least_auc']:.0%}"
    paid = ranking["paid"]
    return {
        "preflight": f"{answer} on {episodes}",
        "a success scores above a failure": f"{ranking['auc']:.0%} of pairs ({before})",
        "mean score": f"{figure(paid['success'])} for a success, {figure(paid['failure'])} for a failure",
    }
