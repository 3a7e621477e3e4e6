"""Print what to do next in a study: the scores, the best ideas with their evidence, what was learned, the command.

The answer depends only on the files on disk, so a new session takes the same step. It has at most 1 kB; --full adds
the other legal commands, recent candidates, what may change, and the budget.

Example: rlx next
         rlx next trot --full
"""

from __future__ import annotations

from rlx import TYPE_CHECKING
from rlx.errors import EvidenceInvalid
from rlx.hosts.cli.arguments import Args, Data, Parser, add_study, find_study
from rlx.hosts.cli.format import NOTHING, counted, duration, figure, signed
from rlx.hosts.cli.output import exit_code_if, labelled, table

if TYPE_CHECKING:
    from rlx.command import Command
    from rlx.study.study_folder import Study


def arguments(parser: Parser) -> None:
    add_study(parser)
    parser.add_argument("--study", dest="name", metavar="STUDY", help="the same")
    parser.add_argument("--full", action="store_true", help="print everything: candidates, scope, other commands")


def run(args: Args) -> Data:
    study = find_study(args.name or args.study)
    if not args.full:
        answer, _ = short_answer(study)
        return answer
    from rlx.loop.study.agent.compact import full

    return _with_exit_code(full(study))


def short_answer(study: Study) -> tuple[Data, Command]:
    """Return the answer in 1 kB, and its command as a value."""
    from rlx.loop.study.agent.compact import compact

    data, command = compact(study)
    return _with_exit_code(data), command


def _with_exit_code(data: Data) -> Data:
    return {**data, "exit_code": exit_code_if(data["integrity"], EvidenceInvalid)}


def render(data: Data) -> str:
    if "recent" in data:
        return _full(data)
    scores, left = data["scores"], data["left"]
    ceiling = ""
    if scores["ceiling"] is not None:
        ceiling = f", best possible {figure(scores['ceiling'])}"
    return labelled({
        "NOT sound": data["integrity"],
        "study": f"{data['study']} ({data['status']})",
        "score": f"{scores['metric']}: baseline {figure(scores['baseline'])}, head {data['head']} "
                 f"{figure(scores['head'])}{ceiling}",
        "left": f"{counted(left['seeds'], 'seed')}, {counted(left['candidates'], 'candidate')}, "
                f"{counted(left['claims'], 'claim')}",
        "tried": data["history"],
        "finding": data["findings"],
        "idea": _ideas(data),
        "why": data["why"],
        "or": data["also"],
        "next": data["command"],
    })  # fmt: skip


def _ideas(data: Data) -> list[str]:
    lines = []
    for idea in data["ideas"]:
        tried = f" (tried: {idea['tried']})" if idea.get("tried") else ""
        lines.append(f"{idea['idea']}: {idea['because']}{tried}\n      {idea['propose']}")
    return lines


def _full(data: Data) -> str:
    left = data["left"]
    amounts = [seeds_left(left), f"{duration(left['seconds'])} of training"]
    amounts += [counted(left["candidates"], "candidate"), counted(left["claims"], "claim")]
    head = labelled({
        "NOT sound": data["integrity"],
        "study": f"{data['task']}/{data['study']} ({data['status']})",
        "head": f"{data['head']}   incumbent: {data['incumbent'] or NOTHING}",
        "metric": data["metric"],
        "left": ", ".join(amounts),
        "may change": ", ".join([*data["allowed"]["keys"], *data["allowed"]["paths"]]),
    })  # fmt: skip
    tail = labelled({
        "finding": data["findings"],
        "idea": _ideas(data),
        "tried": data["history"],
        "why": data["why"],
        "or": [action["command"] for action in data["also"]],
        "next": data["command"],
    })  # fmt: skip
    if not data["recent"]:
        return f"{head}\n{tail}"
    return f"{head}\n\n{candidate_table(data['recent'])}\n\n{tail}"


def seeds_left(left: Data) -> str:
    """Spell the seeds that are left, and how many of them the remaining time can pay for if these are fewer."""
    text = f"{left['seeds']} seeds"
    if left["payable_seeds"] < left["seeds"]:
        text += f" (time for {left['payable_seeds']}, if each takes the contract's maximum)"
    return text


def candidate_table(rows: list[Data]) -> str:
    """Lay out candidates and their results; nothing if there are none."""
    if not rows:
        return ""
    cells = []
    for row in rows:
        effect = NOTHING
        if row["effect"] is not None:
            effect = f"{signed(row['effect'])} v {row['against']}"
        cells.append([row["candidate"], row["standing"], effect, figure(row["p"]), row["hypothesis"]])
    return table(["candidate", "state", "effect", "p", "hypothesis"], cells, right=(2, 3))
