"""Print where a lab stands: its rung and head, whether a driver runs, its sessions, their cost, and what is next.

Example: rlx lab status
         rlx lab status --json
"""

from __future__ import annotations

from rlx.hosts.cli.arguments import Args, Data, Parser
from rlx.hosts.cli.format import figure, when
from rlx.hosts.cli.output import labelled


def arguments(_parser: Parser) -> None:
    """It has no options."""


def run(_args: Args) -> Data:
    from rlx.loop.lab.lab_folder import Lab
    from rlx.loop.lab.morning_report import describe_lab

    return describe_lab(Lab.open())


def render(data: Data) -> str:
    driver = "runs" if data["is_running"] else "does not run"
    if data["waits_until"] and data["is_running"]:
        driver += f", waits until {when(data['waits_until'])}"
    score = "" if data["head_score"] is None else f", {data['metric']} {figure(data['head_score'])}"
    dollars = "unknown" if data["dollars"] is None else f"${data['dollars']:.2f}"
    return labelled({
        "lab": f"{data['lab']} ({data['kind']}), rung {data['rung']}",
        "driver": driver,
        "last drive": data["ended"],
        "head": f"{data['head']}{score}",
        "confirmed": data["incumbent"],
        "attempts": _counted(data["attempts"], data["statuses"]),
        "sessions": _counted(data["sessions"], data["outcomes"]),
        "cost": dollars if data["sessions"] else "",
        "next": data["next"],
    })  # fmt: skip


def _counted(count: int, kinds: dict[str, int]) -> str:
    """Return a number of things and how many are of each kind."""
    each = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
    return f"{count} ({each})" if count else "none"
