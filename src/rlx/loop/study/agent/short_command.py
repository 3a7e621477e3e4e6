"""The shortest command for a step: `rlx try` takes several steps in one call."""

from __future__ import annotations

from collections.abc import Sequence

from rlx.command import Command, rlx
from rlx.loop.study.step_commands import PROPOSAL, Step


def short_command(step: Step, study: tuple[str, ...], *, idea: str = "", racers: Sequence[str] = ()) -> Command:
    """Return `rlx try …` if it takes this step and those after it, else the step's own command.

    `study` are the words that select the study, `idea` is the best idea if there is one. `racers` are the candidates
    for whose races the head trains on fresh seeds.
    """
    move = step.move
    if move.phase == "promotion" and racers:
        return rlx("try", racers[0], *study)
    if move.phase == "confirmation" and move.kind in ("launch", "wait", "decide"):
        return rlx("try", "--claim", *study)
    if move.phase == "trial" and move.kind in ("check", "launch", "wait", "decide"):
        return rlx("try", move.candidate, *study)
    if move.kind != "propose":
        return step.command
    if proposes_from_file(step):
        return rlx("try", "--file", PROPOSAL, *study)
    if idea:
        return rlx("try", "--idea", idea, *study)
    return step.command


def proposes_from_file(step: Step) -> bool:
    """Whether the step proposes a candidate from a file that exists."""
    return "--file" in step.command.argv
