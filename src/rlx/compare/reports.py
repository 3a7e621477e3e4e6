"""The evaluations a run already has: the scores of its final policies, and what its `best` checkpoints claimed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from rlx.errors import EvidenceInvalid, NotFound
from rlx.files import number
from rlx.runs import checkpoint as checkpoints
from rlx.runs.run import Run
from rlx.runs.status import FAILED


@dataclass(frozen=True)
class Report:
    """One seed's evaluation of its final policy on report episodes; `figures` are means over its episodes."""

    score: float
    step: int
    time: float
    episodes: int
    protocol: Mapping[str, Any]
    random: float | None
    figures: Mapping[str, float]
    metric: str = "return"


Reports = dict[str, dict[int, Report]]
"""Fingerprint → training seed → report."""


@dataclass(frozen=True)
class Curse:
    """What the `best` checkpoints of a run claimed when they were selected, and what they score on other episodes.

    `episodes` says on which: `fresh` or `report`.
    """

    claimed: float
    scored: float
    seeds: int
    episodes: str


def reports_of(run: Run) -> Reports:
    """Return the evaluations of a run's final policies on report episodes; raises where there are none."""
    found = stored_reports(run)
    if not found:
        explain_nothing(run)
    return found


def stored_reports(run: Run) -> Reports:
    """Return the evaluations of a run's final policies on report episodes, if any."""
    found: Reports = {}
    for document in run.evaluations():
        if document.get("purpose") == "report" and document["name"] == f"seed_{document.get('seed')}_latest":
            found.setdefault(document["fingerprint"], {})[document["seed"]] = _report(document)
    return found


def _report(document: Mapping[str, Any]) -> Report:
    random = document.get("random")
    names = {"length": "length_mean", "success_rate": "success_rate", "pass_rate": "pass_rate"}
    return Report(
        score=_score(document),
        step=document["step"],
        time=document["time"],
        episodes=document.get("n") or document["protocol"]["episodes"],
        protocol=document["protocol"],
        random=_score(random) if random else None,
        figures={name: number(document[key]) for name, key in names.items() if key in document} | _terms(document),
        metric=str(document.get("metric") or "return"),
    )


def _score(document: Mapping[str, Any]) -> float:
    """Return the figure the protocol's metric names: the mean return, unless it says otherwise."""
    return number(document.get("score", document["mean"]))


def _terms(document: Mapping[str, Any]) -> dict[str, float]:
    """Return the mean of every reward term over the episodes; one that an episode does not have counts as 0 there."""
    played = [episode for episode in document.get("episodes") or [] if "scenario" not in episode]
    episodes = [episode.get("terms") or {} for episode in played]
    found = dict.fromkeys(name for terms in episodes for name in terms)
    return {name: sum(number(terms.get(name, 0.0)) for terms in episodes) / len(episodes) for name in found}


def explain_nothing(run: Run) -> NoReturn:
    """Raise with the reason why a run has no scores, and what would give it some."""
    failed = [seed for seed in run.seeds if seed.status.state == FAILED]
    if failed and len(failed) == len(run.seeds):
        why = f"no seed of {run.name} has a score: all {len(failed)} crashed ({failed[0].status.reason})"
        raise EvidenceInvalid(why, hint=f"rlx info {run.name} --traceback")
    hint = f"rlx eval {run.name}"
    if run.is_script:
        hint = "score it in the script that trains it: run.evaluate(policy)"
    elif run.is_opaque:
        hint = f"rlx cannot open its checkpoints; its own figures: rlx plot {run.name}"
    elif not any(checkpoints.names(seed.checkpoints) for seed in run.seeds):
        hint = f"it has no checkpoint to evaluate: rlx info {run.name}"
    raise NotFound(f"{run.name} has no report evaluation of its final policy", hint=hint)


def shared_fingerprints(reports: Sequence[Reports], own: Collection[str | None] = ()) -> list[str]:
    """Return the protocols that all runs were scored under, the one to judge by first.

    That is the runs' `own` where it is one and the same; else the one with most seeds, then most episodes, then the
    newest.
    """
    shared = set.intersection(*(set(found) for found in reports))

    def order(fingerprint: str) -> tuple[bool, int, int, float]:
        every = [found[fingerprint] for found in reports]
        newest = [report for seeds in every for report in seeds.values()]
        is_own = set(own) == {fingerprint}
        return is_own, sum(map(len, every)), newest[0].protocol["episodes"], max(report.time for report in newest)

    return sorted(shared, key=order, reverse=True)


def newest(found: Reports) -> Report:
    """Return the report that was made last."""
    return max((report for seeds in found.values() for report in seeds.values()), key=lambda report: report.time)


def winners_curse(run: Run, fingerprint: str) -> Curse | None:
    """Compare what `best` checkpoints claimed with what they score on fresh episodes, else on those of this report.

    The claim is the evaluation that selected this very checkpoint, the highest of all that were made: it is high by
    skill and by luck, and only the skill is there on other episodes. Only seeds that have both count. None where no
    `best` was evaluated under this protocol, its episodes aside.
    """
    documents = run.evaluations()
    asked = next((_measure(one) for one in documents if one["fingerprint"] == fingerprint), None)
    alike = [one for one in documents if _measure(one) == asked]
    claims = {one["name"]: _score(one) for one in alike if one.get("purpose") == "selection"}
    best = sorted((one for one in alike if one["name"] == f"seed_{one.get('seed')}_best"), key=lambda one: one["time"])
    for episodes, again in (
        ("fresh", [one for one in best if one.get("purpose") == "fresh"]),
        ("report", [one for one in best if one["fingerprint"] == fingerprint]),
    ):
        newest = {one["seed"]: (f"seed_{one['seed']}_step_{one.get('step')}", _score(one)) for one in again}
        both = [(claims[selected], scored) for selected, scored in newest.values() if selected in claims]
        if both:
            claimed, scored = (sum(of) / len(both) for of in zip(*both, strict=True))
            return Curse(claimed, scored, len(both), episodes)
    return None


def _measure(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is measured, whatever the episodes: selection, report and fresh episodes of one protocol agree."""
    protocol = document.get("protocol") or {}
    aside = {"episodes", "seeds", "purpose"} | (set() if protocol.get("metric") == "pass_rate" else {"scenarios"})
    return {key: value for key, value in protocol.items() if key not in aside}
