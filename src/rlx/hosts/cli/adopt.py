"""Read a repository that does not know rlx, and draft its task. rlx runs and imports nothing of it.

The report lists the training and evaluation programs, options, seeds, logs, metrics, checkpoints, reward terms and
launchers, each with file, line and confidence; the defects that would spoil evidence; and the questions that only you
can answer. --write stores the draft as a task of the repository: `rlx task show` prints it, and a study can use it.

--eval-template writes evals/rlx_eval.py, which turns a checkpoint into a number per episode and fails if it cannot.
--smoke trains two seeds for a moment, in the sandbox and with the repository's own interpreter. It is the only option
that runs code of the repository. It exits with 6 if the metric, its steps or the checkpoint are not found.

Example: rlx adopt
         rlx adopt ../cleanrl --program cleanrl/dqn.py
         rlx adopt --write
         rlx adopt --eval-template --write
         rlx adopt --smoke
"""

from pathlib import Path
from typing import Any

from rlx.errors import EvidenceInvalid
from rlx.hosts.cli.arguments import Args, Data, Parser
from rlx.hosts.cli.format import counted
from rlx.hosts.cli.output import exit_code_if, labelled
from rlx.number_format import listed

MOST_SHOWN = 6
MOST_DEFECTS = 12
CONFIDENCES = ("high", "medium", "low")


def arguments(parser: Parser) -> None:
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="DIR", help="the repository")
    parser.add_argument("--program", metavar="FILE", help="the training program to draft (default: rlx chooses)")
    parser.add_argument("--write", action="store_true", help="store the draft as a task of the repository")
    parser.add_argument("--eval-template", action="store_true", help="write an evaluation that fails closed")
    parser.add_argument("--smoke", action="store_true", help="train two seeds for a moment and check what they write")
    parser.add_argument("--seconds", type=float, default=180.0, metavar="S", help="the time limit of --smoke")
    parser.add_argument("--name", metavar="TASK", help="the name of the task (default: the folder's)")
    parser.add_argument("--mission", default="", metavar="TEXT", help="what should get better")
    parser.add_argument("--replace", action="store_true", help="rewrite a task that has no approved study")


def run(args: Args) -> Data:
    from rlx.loop.adopt.adopt_repository import AdoptWishes, adopt

    data = adopt(
        args.folder,
        AdoptWishes(
            program=args.program, writes=args.write, writes_eval=args.eval_template, smokes=args.smoke,
            smoke_seconds=args.seconds, name=args.name, mission=args.mission, replaces=args.replace,
        ),
    )  # fmt: skip
    is_invalid = data["smoke"] is not None and not data["smoke"]["is_valid"]
    return {**data, "exit_code": exit_code_if(is_invalid, EvidenceInvalid)}


def render(data: Data) -> str:
    facts: dict[str, Any] = {
        "repository": f"{data['folder']} ({counted(data['files'], 'file')}, {data['seconds']:.1f} s)",
        "profile": data["profile"],
    }
    for kind, rows in data["facts"].items():
        if rows:
            facts[kind] = _fact_line(rows)
    if not data["facts"].get("train"):
        facts["train"] = "no training program found; name it with --program FILE"
    lines = [labelled(facts)]
    if data["defects"]:
        lines += ["", f"{counted(len(data['defects']), 'defect')}:"]
        lines += _defect_lines(data["defects"])
    draft = data["draft"]
    if draft:
        lines += ["", labelled({
            "train": draft["train"], "metrics": draft["metrics"], "working folder": draft["cwd"] or "the repository",
            "steps": draft["length"], "note": [*draft["notes"], *data["notes"][:3]], "task": data["task_file"],
        })]  # fmt: skip
        lines += ["", "questions:", *(f"  {one['key']}: {one['text']}" for one in draft["questions"])]
    if data["smoke"]:
        lines += ["", *_smoke_lines(data["smoke"])]
    lines += ["", labelled({"evaluation": data["eval_file"], "next": data["command"]})]
    return "\n".join(lines)


def _defect_lines(defects: list[dict[str, Any]]) -> list[str]:
    """Return the defects, the most certain ones first; equal ones are named together."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for defect in sorted(defects, key=lambda defect: CONFIDENCES.index(defect["confidence"])):
        groups.setdefault((defect["message"], defect["why"]), []).append(defect)
    lines = []
    for (message, why), alike in list(groups.items())[:MOST_DEFECTS]:
        places = [f"{defect['file']}:{defect['line']}" for defect in alike]
        more = ""
        if len(places) > 3:
            more = f" and {len(places) - 3} more"
        lines.append(f"  {message} ({alike[0]['confidence']}): {', '.join(places[:3])}{more}")
        lines.append(f"    {why}")
    if len(groups) > MOST_DEFECTS:
        lines.append(f"  … and {len(groups) - MOST_DEFECTS} more: rlx adopt --json")
    return lines


def _smoke_lines(smoke: dict[str, Any]) -> list[str]:
    verdict = "valid"
    if not smoke["is_valid"]:
        verdict = "invalid"
    rows = []
    for row in smoke["seeds"]:
        found = f"{counted(row['rows'], 'row')}, last step {row['last_step']}, checkpoint {row['checkpoint']}"
        rows.append(f"seed {row['seed']}: {found}")
    return [labelled({"smoke": [verdict, *rows], "problem": smoke["problems"]})]


def _fact_line(rows: list[dict[str, Any]]) -> list[str]:
    """Return the facts of a kind: those with the highest confidence with their places, and the number of the rest."""
    shown = [_spelled(row) for row in rows[:MOST_SHOWN]]
    rest = list(dict.fromkeys(str(row["name"]) for row in rows[MOST_SHOWN:]))
    if rest:
        shown.append(f"and {len(rows) - MOST_SHOWN} more: {listed(rest)}")
    return shown


def _spelled(row: dict[str, Any]) -> str:
    text = str(row["name"])
    if row["value"] is not None and row["kind"] not in ("train", "eval", "interpreter", "checkpoint"):
        text += f" {row['value']}"
    place = f"{row['file']}:{row['line']}"
    if text == row["file"]:
        place = f"line {row['line']}"
    return f"{text}  ({place}, {row['confidence']})"
