"""What to do next: commands, the likeliest to help first; each is a command line that works as it stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rlx.config import catalog
from rlx.diagnose.case import Case
from rlx.diagnose.diagnose import Diagnosis
from rlx.diagnose.rules import load

FEW_SEEDS = 3
MOST = 8


@dataclass(frozen=True)
class Suggestion:
    """One command as words, why, and the rule that asks for it."""

    words: tuple[str, ...]
    why: str
    rule: str = ""


def suggest(case: Case, found: Diagnosis, *, snapshot: str) -> tuple[Suggestion, ...]:
    """Return the commands worth running next; `snapshot` is the path of the run's config from here."""
    if any(seed.state == "running" for seed in case.seeds):
        return (_rlx(("watch", case.name), "it is training: watch it to its end"),)
    ranked = [*_unfinished(case), *_changes(case, found, snapshot), *_measured(case, found), *_sound(case, found)]
    unique = {suggestion.words: suggestion for suggestion in reversed(ranked)}
    return tuple(one for one in ranked if unique.pop(one.words, None))[:MOST]


def _rlx(words: tuple[str, ...], why: str, rule: str = "") -> Suggestion:
    return Suggestion(("rlx", *words), why, rule)


def _unfinished(case: Case) -> Iterator[Suggestion]:
    states = {seed.state for seed in case.seeds}
    if "failed" in states:
        yield _rlx(("info", case.name, "--traceback"), "see where it failed", "crashed")
    is_resumable = not case.is_script and any(state in states for state in ("interrupted", "lost"))
    if is_resumable:
        yield _rlx(("resume", case.name), "it was stopped before its end")


def _changes(case: Case, found: Diagnosis, snapshot: str) -> Iterator[Suggestion]:
    """Yield a training for every change of the config that a finding asks for; the first change of each comes first."""
    seeds = str(max(FEW_SEEDS, len(case.seeds)))
    rounds = max((len(finding.changes) for finding in found.findings), default=0)
    for place in range(rounds):
        for finding in found.findings:
            for key, value in finding.changes[place].items() if place < len(finding.changes) else ():
                words = ("train", snapshot, "-s", f"{key}={spell(value)}", "-s", "backend=auto", "--seeds", seeds)
                yield _rlx(words, load(finding.rule).says, finding.rule)


def _measured(case: Case, found: Diagnosis) -> Iterator[Suggestion]:
    if case.is_script or not case.seeds:
        return
    names = {finding.rule for finding in found.findings}
    if names & {"no_learning", "plateau"} and (known := catalog.for_env(str(case.setting("env.id")))):
        yield _rlx(("train", f"catalog:{known}"), "a config that was measured to learn here", "no_learning")
    if any(seed.state == "completed" and seed.report is None for seed in case.seeds):
        yield _rlx(("eval", case.name), "its final policies have no score of their own")
    if "collapse_after_peak" in names:
        yield _rlx(("eval", f"{case.name}:best"), "what it could do at its peak", "collapse_after_peak")


def _sound(case: Case, found: Diagnosis) -> Iterator[Suggestion]:
    if not case.seeds:
        return
    is_sound = not [finding for finding in found.findings if finding.severity != "low"]
    is_done = all(seed.state == "completed" for seed in case.seeds) and not case.is_script
    if is_sound and is_done and len(case.seeds) < FEW_SEEDS:
        yield _rlx(
            ("train", "--more", case.name, "--seeds", "4"), "no failure seen, on too few seeds to claim anything"
        )
    yield _rlx(("plot", case.name), "see the curves")


def spell(value: Any) -> str:
    """Write a config value as an override takes it."""
    return value if isinstance(value, str) else json.dumps(value)
