"""Show a contract's eight points on one screen: which are settled, which are open, and what the budget affords.

Example: rlx study show
"""

from rlx.hosts.cli.arguments import Args, Data, add_study, find_study
from rlx.hosts.cli.output import paint

arguments = add_study


def run(args: Args) -> Data:
    from rlx.loop.study.study_status import notice_amendment

    return notice_amendment(find_study(args.study))


def render(data: Data) -> str:
    return f"{screen(data)}\nnext: {data['command']}"


def screen(data: Data) -> str:
    """Return the whole contract as a person reads it before approving it."""
    marks = {True: paint("settled", "green"), False: paint("open", "red")}
    lines = [f"study: {data['task']}/{data['study']} ({data['status']})", ""]
    for point in data["points"]:
        lines.append(f"{point['number']}. {point['title']}  [{marks[bool(point['settled'])]}]")
        lines += [f"     {line}" for line in point["lines"]]
        lines += [f"     open: {problem}" for problem in point["problems"]]
        lines += [f"     note: {note}" for note in point["notes"]]
    lines += ["", f"rehearsal: {data['rehearsal']}"]
    return "\n".join([*lines, f"contract: {data['file']} (sha256 {data['sha256'][:16]})"])
