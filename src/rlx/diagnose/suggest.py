"""What to do next: commands that run as printed, the likeliest to help first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rlx.config import catalog
from rlx.diagnose.analyze import analyze, stuck_seeds
from rlx.diagnose.finding import Finding
from rlx.diagnose.rule import RuleReport
from rlx.diagnose.rules import load
from rlx.diagnose.run_case import RETURN, TERMS, RunCase

FEW_SEEDS = 3
MOST = 8
LONGER = 2
UNFINISHED = ("seeds_disagree", "plateau", "outdone")
"""Findings that a training which has not ended its rise may have for that reason alone."""


@dataclass(frozen=True)
class Suggestion:
    """One command as words, the reason for it, and the rule that asks for it."""

    words: tuple[str, ...]
    why: str
    rule: str = ""


def suggest(case: RunCase, report: RuleReport, *, snapshot: str) -> tuple[Suggestion, ...]:
    """Return the commands worth running next. `snapshot` is the path of the run's config from here."""
    if any(seed.state == "running" for seed in case.seeds):
        return (Suggestion(("rlx", "watch", case.name), "it is training: watch it to its end"),)
    ranked = [
        *_finish(case), *_causes(report), *_understand(case, report), *_changes(case, report, snapshot),
        *_train_longer(case, report), *_look_at_seeds(case), *_measure(case, report), *_advised(report),
        *_conclude(case, report),
    ]  # fmt: skip
    first_by_words: dict[tuple[str, ...], Suggestion] = {}
    for suggestion in ranked:
        first_by_words.setdefault(suggestion.words, suggestion)
    return tuple(first_by_words.values())[:MOST]


def _finish(case: RunCase) -> Iterator[Suggestion]:
    states = {seed.state for seed in case.seeds}
    if "failed" in states:
        yield Suggestion(("rlx", "info", case.name, "--traceback"), "see the error", "crashed")
    if not case.is_script and states & {"interrupted", "lost"}:
        yield Suggestion(("rlx", "resume", case.name), "it was stopped before its end")


def _causes(report: RuleReport) -> Iterator[Suggestion]:
    """Yield the commands of causes that no config change removes, such as an environment that gives NaN."""
    for finding in report.findings:
        if load(finding.rule).kind in ("broken", "cause") and not finding.changes:
            yield from _commands(finding)


def _advised(report: RuleReport) -> Iterator[Suggestion]:
    """Yield the commands that the findings' advice names."""
    for finding in report.findings:
        yield from _commands(finding)


def _commands(finding: Finding) -> Iterator[Suggestion]:
    for command in finding.commands:
        yield Suggestion(command.words, f"{load(finding.rule).summary}: {command.why}", finding.rule)


def _changes(case: RunCase, report: RuleReport, snapshot: str) -> Iterator[Suggestion]:
    """Yield a training for every config change of a finding: the first change of each finding comes first."""
    seeds = str(max(FEW_SEEDS, len(case.seeds)))
    rounds = max((len(finding.changes) for finding in report.findings), default=0)
    for index in range(rounds):
        for finding in report.findings:
            for change in finding.changes[index : index + 1]:
                for key, value in change.items():
                    override = f"{key}={spell_value(value)}"
                    words = ("rlx", "train", snapshot, "-s", override, "-s", "backend=auto", "--seeds", seeds)
                    yield Suggestion(words, load(finding.rule).summary, finding.rule)


def _train_longer(case: RunCase, report: RuleReport) -> Iterator[Suggestion]:
    """Yield a longer training if the returns still rise: settle tells whether it helps."""
    steps = case.setting("algo.total_timesteps")
    if case.is_script or not isinstance(steps, int) or not _needs_more_steps(case, report):
        return
    longer = f"algo.total_timesteps={LONGER * steps}"
    words = ("rlx", "settle", case.name, case.name, "-s", longer, "--budget-question")
    yield Suggestion(words, f"the return still rises: settle whether {LONGER} times the steps help")


def _needs_more_steps(case: RunCase, report: RuleReport) -> bool:
    """Say whether a complete training still rises, and nothing else is wrong with it."""
    is_done = bool(case.seeds) and all(seed.state == "completed" for seed in case.seeds)
    is_sound = all(finding.severity == "low" or finding.rule in UNFINISHED for finding in report.findings)
    return is_done and is_sound and analyze(case).answer == "still rising"


def advise_script(case: RunCase, report: RuleReport) -> tuple[str, ...]:
    """Return what a person should change in a script that rlx cannot run: train longer if the returns still rise."""
    if not case.is_script or not _needs_more_steps(case, report):
        return ()
    steps = LONGER * max(seed.step for seed in case.seeds)
    compare = f"rlx compare {case.name} NEW_RUN --budget-question"
    if not any(seed.report for seed in case.seeds) and case.has(RETURN):
        compare += f" --metric {RETURN}"
    return (
        f"train longer: the return still rises. Let your script train a new run for {steps:,} steps, then ask whether "
        f"that helped: {compare}",
    )


def _understand(case: RunCase, report: RuleReport) -> Iterator[Suggestion]:
    """Yield a look at the reward and at the behaviour if the task is not done although the return levelled off."""
    if case.is_script or all(finding.rule != "task_not_done" for finding in report.findings):
        return
    why = load("task_not_done").summary
    if case.has(TERMS):
        yield Suggestion(("rlx", "reflect", case.name), f"{why}: see what each reward term paid", "task_not_done")
    words = ("rlx", "video", case.name, "--which", "worst")
    yield Suggestion(words, f"{why}: watch what it does instead", "task_not_done")


def _look_at_seeds(case: RunCase) -> Iterator[Suggestion]:
    """Yield more seeds, and a film of the worst one, if seeds are stuck."""
    stuck = stuck_seeds(case)
    if not stuck or case.is_script:
        return
    verb = "is" if len(stuck) == 1 else "are"
    why = f"{len(stuck)} of {len(case.seeds)} seeds {verb} stuck"
    yield Suggestion(
        ("rlx", "video", case.name, "--seed", str(stuck[0]), "--which", "worst"), f"{why}: see what one does"
    )
    yield Suggestion(("rlx", "train", "--more", case.name, "--seeds", "5"), f"{why}: find out how often that happens")


def _measure(case: RunCase, report: RuleReport) -> Iterator[Suggestion]:
    if case.is_script or not case.seeds:
        return
    rules = {finding.rule for finding in report.findings}
    known = catalog.for_env(str(case.setting("env.id")))
    if rules & {"no_learning", "plateau"} and known:
        yield Suggestion(("rlx", "train", f"catalog:{known}"), "this config is known to learn here", "no_learning")
    if any(seed.state == "completed" and seed.report is None for seed in case.seeds):
        yield Suggestion(("rlx", "eval", case.name), "its final policies have no score of their own")
    if "collapse_after_peak" in rules:
        yield Suggestion(("rlx", "eval", f"{case.name}:best"), "measure it at its peak", "collapse_after_peak")


def _conclude(case: RunCase, report: RuleReport) -> Iterator[Suggestion]:
    if not case.seeds:
        return
    is_sound = all(finding.severity == "low" for finding in report.findings)
    is_done = all(seed.state == "completed" for seed in case.seeds) and not case.is_script
    if is_sound and is_done and len(case.seeds) < FEW_SEEDS:
        words = ("rlx", "train", "--more", case.name, "--seeds", "4")
        yield Suggestion(words, "no failure seen, on too few seeds to claim anything")
    rate = case.setting("algo.learning_rate")
    if is_sound and is_done and isinstance(rate, float) and rate > 0 and analyze(case).answer == "levelled off":
        words = ("rlx", "settle", case.name, case.name, "-s", f"algo.learning_rate={float(f'{rate * 0.3:.2g}'):g}")
        yield Suggestion(words, "no failure seen: settle one change, the learning rate matters most")
    yield Suggestion(("rlx", "plot", case.name), "see the curves")


def spell_value(value: Any) -> str:
    """Write a config value as an override takes it."""
    return value if isinstance(value, str) else json.dumps(value)
