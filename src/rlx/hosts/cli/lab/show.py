"""Show the tree of ideas, one attempt with its evidence, or the difference of two attempts of one rung.

Attempts of different rungs are not comparable (exit code 4).

Example: rlx lab show
         rlx lab show c003
         rlx lab show c003 c005
"""

from __future__ import annotations

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser
from rlx.hosts.cli.format import figure, signed
from rlx.hosts.cli.lab.try_ import effect_words
from rlx.hosts.cli.output import labelled


def arguments(parser: Parser) -> None:
    parser.add_argument("rows", nargs="*", metavar="ROW", help="an attempt, or two: c003, or hop-12x8/c003")


def run(args: Args) -> Data:
    from rlx.loop.lab.attempt import attempts
    from rlx.loop.lab.idea_tree import difference, find_row, node, tree_lines
    from rlx.loop.lab.lab_folder import Lab

    lab = Lab.open()
    if len(args.rows) > 2:
        raise UsageError("name at most two attempts", hint="rlx lab show c003 c005")
    found = [find_row(lab, name) for name in args.rows]
    if not found:
        lines = [{"depth": depth, **attempt.document()} for depth, attempt in tree_lines(attempts(lab))]
        return {"lab": lab.name, "tree": lines}
    if len(found) == 2:
        gap = difference(*found)
        return {"lab": lab.name, "attempts": [attempt.document() for attempt in found], "difference": gap}
    return {"lab": lab.name, "node": node(lab, found[0])}


def render(data: Data) -> str:
    if "tree" in data:
        return "\n".join(_line(entry) for entry in data["tree"]) or "no attempts yet"
    if "node" in data:
        entry = data["node"]
        return labelled({
            "attempt": f"{entry['row']} at rung {entry['rung']}: {entry['status']}",
            "claim": entry["claim"],
            "score": "" if entry["score"] is None else figure(entry["score"]),
            "effect": effect_words(entry),
            "ideas": entry.get("parts", []),
            "diff": entry.get("diff", ""),
            "evidence": entry.get("evidence", []),
            "lesson": entry.get("lesson", ""),
            "refused": [f"{reason['code']}: {reason['says']}" for reason in entry["reasons"]],
        })  # fmt: skip
    gap = data["difference"]
    text = "not measured" if gap is None else f"{signed(gap)} (means only; `rlx lab try` decides by the race)"
    return labelled({"difference": text})


def _line(entry: Data) -> str:
    label = " (combined)" if entry["combined"] else ""
    return f"{'  ' * entry['depth']}{entry['row']} {entry['status']} {_outcome(entry)}{label} {entry['description']}"


def _outcome(entry: Data) -> str:
    if entry["score"] is None:
        return ""
    effect = ""
    if entry["effect"] is not None:
        effect = f" ({effect_words(entry)})"
    return f"{figure(entry['score'])}{effect}"
