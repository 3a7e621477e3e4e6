"""Try the whole path once with a candidate that changes nothing: worktree, sandbox, training, evaluator, decision.

It trains a few steps on the host and in the sandbox that later jobs will use, and prints every step (--json has them
all). If a step fails, the exit code is 1, and rlx prints the step, the end of its log and the path of the whole log.
The files stay until the next rehearsal.

Example: rlx study rehearse
"""

from rlx.hosts.cli.arguments import Args, Data, Parser, add_study, add_trust, find_study, obey_trust
from rlx.hosts.cli.output import labelled, say


def arguments(parser: Parser) -> None:
    add_study(parser)
    add_trust(parser)


def run(args: Args) -> Data:
    from rlx.loop.study.rehearse import Rehearsal
    from rlx.loop.study.step_commands import next_step

    obey_trust(args)
    study = find_study(args.study)
    data = Rehearsal(study, say=say).walk()
    return {**data, "command": str(next_step(study).command), "exit_code": int(not data["ok"])}


def render(data: Data) -> str:
    checks = data["checks"]
    following = f"next: {data['command']}"
    if data["ok"]:
        return f"rehearsed: all {len(checks)} steps passed\n{following}"
    failed = checks[-1]
    names = [*(check["name"] for check in checks[:-1]), f"[{failed['name']}]", *data["path"][len(checks) :]]
    failure = {
        "not rehearsed": f"{failed['name']} failed ({' → '.join(names)})",
        "failed": f"{failed['name']}: {failed['says']}",
        "hint": failed.get("hint"),
    }
    return "\n".join([labelled(failure), *_log_lines(data), following])


def _log_lines(data: Data) -> list[str]:
    """Return the end of the failed step's log, and the command that prints the whole log."""
    if "log" not in data:
        return []
    tail = [f"  | {line}" for line in data["tail"] or ["(empty)"]]
    return [f"log: {data['log']}", *tail, f"whole log: {data['reads']}"]
