"""Judge a candidate on what is trained: measure what is not measured yet, and say where it stands; decides nothing.

A candidate races the head; the head, once both sides have their seeds, is compared with the original baseline.

Example: rlx verdict c001
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.hosts.cli.output import say
from rlx.hosts.cli.words import figure, guarded, plural, signed
from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("candidate", help="a candidate's id")
    parser.add_argument("--study", metavar="STUDY", help="another study than the one in use")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.loop.judgement import verdict
    from rlx.study.study import find

    return verdict(find(project.root(), args.study), args.candidate, say=say)


def render(data: dict[str, Any]) -> str:
    return "\n".join([*judged(data), f"next: {data['command']}"])


def _complexity(*, lines: int, parameters: int | None) -> str:
    counted = (
        f"{parameters:,} parameters" if parameters is not None else "parameters not known (a policy of its own kind)"
    )
    return f"{plural(lines, 'changed line')} (a config key is one), {counted}"


def _seconds(ours: float | None, theirs: float | None) -> list[str]:
    return [f"time: {figure(theirs)} v {figure(ours)} s a seed"] if ours is not None and theirs is not None else []


def judged(data: dict[str, Any]) -> list[str]:
    """Spell a judgement, with the level of its evidence and of its approval; the candidate's figures come first."""
    lines = [
        f"candidate: {data['candidate']} against {data['against']} ({data['test']})",
        f"verdict: {data['verdict']}",
    ]
    if data["effect"] is not None:
        low, high = (figure(end) if end is not None else "open" for end in data["interval"])
        lines.append(f"{data['metric']}: {signed(data['effect'])} [{low}, {high}], p = {figure(data['p'])}")
    lines += [
        f"seeds: {data['n'][1]} v {data['n'][0]}" + (f", {data['crashed']} crashed" if data["crashed"] else ""),
        f"why: {data['reason']}",
        *(f"guard: {name}: {guarded(one)}" for name, one in data["guardrails"].items()),
        *(f"invalid: {one}" for one in data["objections"]),
        *(f"note: {one}" for one in data["notes"]),
        *_seconds(*data["seconds_a_seed"]),
        f"complexity: {_complexity(**data['complexity'])}",
        f"evidence: {data['level']}; approval: {data['approval']}; enforced: {data['enforced']}",
    ]
    return lines
