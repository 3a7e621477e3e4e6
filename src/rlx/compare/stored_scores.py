"""The evaluations that a run already has: the scores of its final policies, and what its `best` checkpoints claimed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from rlx.compare.question import STANDARD, ComparisonQuestion, Evidence
from rlx.errors import EvidenceInvalid, FileDamaged, NotFound, hint_for
from rlx.files import is_number, number
from rlx.number_format import listed
from rlx.runs.checkpoints import checkpoint
from rlx.runs.run import Run
from rlx.runs.status import FAILED


@dataclass(frozen=True)
class StoredScore:
    """The evaluation of one seed's final policy on report episodes. `figures` are means over its episodes."""

    score: float
    step: int
    time: float
    episodes: int
    protocol: Mapping[str, Any]
    random: float | None
    figures: Mapping[str, float]
    metric: str = "return"
    evidence: Evidence = "measured"


StoredScores = dict[str, dict[int, StoredScore]]
"""Fingerprint → training seed → score."""


@dataclass(frozen=True)
class WinnersCurse:
    """The score at which the `best` checkpoints of a run were selected, and their score on other episodes.

    `episodes` says which other episodes: `fresh` or `report`.
    """

    claimed: float
    scored: float
    seeds: int
    episodes: str


def required_scores(run: Run, question: ComparisonQuestion = STANDARD) -> StoredScores:
    """Return the scores that answer a question, by default the report evaluations. Raises if there are none."""
    if question.metric is None:
        return stored_scores(run) or raise_without_scores(run)
    scores = logged_scores(run, question)
    if scores:
        return scores
    known = run.metric_names()
    if not known:
        raise NotFound(f"{run.name} has logged no metrics yet", hint=f"rlx info {run.name}")
    near = hint_for(question.metric, known, otherwise=f"it logged: {listed(known)}")
    raise NotFound(f"no seed of {run.name} has logged `{question.metric}`", hint=near)


def scores_for(run: Run, question: ComparisonQuestion) -> StoredScores:
    """Return the scores that answer a question, if any."""
    if question.metric is None:
        return stored_scores(run)
    return logged_scores(run, question)


def logged_scores(run: Run, question: ComparisonQuestion) -> StoredScores:
    """Return the last logged value of the question's metric of every seed. The training reports it by itself."""
    scores: dict[int, StoredScore] = {}
    metric = str(question.metric)
    for seed in run.seeds:
        rows = [row for row in seed.rows if is_number(row.get(metric))]
        if not rows:
            continue
        last = rows[-1]
        score = number(last[metric])
        if question.is_lower_better:
            score = -score
        newest_values = {name: value for row in seed.rows for name, value in row.items() if is_number(value)}
        scores[seed.number] = StoredScore(
            score=score,
            step=int(last["step"]),
            time=float(last["time"]),
            episodes=0,
            protocol={"episodes": 0, "metric": metric},
            random=None,
            figures={name: number(value) for name, value in newest_values.items() if name not in ("step", "time")},
            metric=question.score_name,
            evidence="reported",
        )
    if not scores:
        return {}
    return {question.fingerprint: scores}


def stored_scores(run: Run) -> StoredScores:
    """Return the evaluations of a run's final policies on report episodes, if any."""
    scores: StoredScores = {}
    for document in run.evaluations():
        if document.get("purpose") == "report" and document["name"] == f"seed_{document.get('seed')}_latest":
            try:
                score = _read(document)
            except (KeyError, TypeError, AttributeError) as error:
                place = f"{run.name}/eval/{document['fingerprint']}/{document['name']}.json"
                raise FileDamaged(f"{place} is not an evaluation: {error}") from None
            scores.setdefault(document["fingerprint"], {})[document["seed"]] = score
    return scores


def _read(document: Mapping[str, Any]) -> StoredScore:
    random = document.get("random")
    names = {"length": "length_mean", "success_rate": "success_rate", "pass_rate": "pass_rate"}
    return StoredScore(
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
    """Return the figure that the protocol's metric names: the mean return by default."""
    return number(document.get("score", document["mean"]))


def _terms(document: Mapping[str, Any]) -> dict[str, float]:
    """Return the mean of every reward term over the episodes. A term that an episode does not have counts as 0."""
    played = [episode for episode in document.get("episodes") or [] if "scenario" not in episode]
    episodes = [episode.get("terms") or {} for episode in played]
    names = dict.fromkeys(name for terms in episodes for name in terms)
    return {name: sum(number(terms.get(name, 0.0)) for terms in episodes) / len(episodes) for name in names}


def raise_without_scores(run: Run) -> NoReturn:
    """Raise with the reason why a run has no scores, and with the command that would give it some."""
    failed = [seed for seed in run.seeds if seed.status.state == FAILED]
    if failed and len(failed) == len(run.seeds):
        problem = f"no seed of {run.name} has a score: all {len(failed)} crashed ({failed[0].status.reason})"
        raise EvidenceInvalid(problem, hint=f"rlx info {run.name} --traceback")
    hint = f"rlx eval {run.name}"
    logged = next(iter(_scores_first(run.metric_names())), None)
    if run.is_script:
        hint = "score it in the script that trains it: run.evaluate(policy)"
        if logged:
            hint += f", or judge a metric that it logged: --metric {logged}"
    elif run.is_opaque and logged:
        hint = f"rlx cannot open its checkpoints; judge a metric that it logged: --metric {logged}"
    elif not any(checkpoint.names(seed.checkpoints) for seed in run.seeds):
        hint = f"it has no checkpoint to evaluate: rlx info {run.name}"
    raise NotFound(f"{run.name} has no report evaluation of its final policy", hint=hint)


def _scores_first(names: Sequence[str]) -> list[str]:
    """Sort metrics so that those which look like a score come first."""
    words = ("return", "reward", "success", "score")
    return sorted(names, key=lambda name: not any(word in name.lower() for word in words))


def shared_fingerprints(runs: Sequence[StoredScores], own: Collection[str | None] = ()) -> list[str]:
    """Return the protocols that all runs were scored under, the one to judge by first.

    That is the runs' `own` protocol if all have the same; otherwise the one with most seeds, then most episodes, then
    the newest.
    """

    def order(fingerprint: str) -> tuple[bool, int, int, float]:
        scores = [score for run in runs for score in run[fingerprint].values()]
        is_own = set(own) == {fingerprint}
        return is_own, len(scores), scores[0].protocol["episodes"], max(score.time for score in scores)

    return sorted(set.intersection(*(set(run) for run in runs)), key=order, reverse=True)


def newest(scores: StoredScores) -> StoredScore:
    """Return the score that was measured last."""
    return max((score for seeds in scores.values() for score in seeds.values()), key=lambda score: score.time)


def winners_curse(run: Run, fingerprint: str) -> WinnersCurse | None:
    """Compare the claims of `best` checkpoints with their scores on fresh episodes, or else on those of this report.

    The claim is the evaluation that selected the checkpoint, the highest of all periodic evaluations. It is high by
    skill and by luck, and only the skill remains on other episodes. Only seeds that have both figures count. Returns
    None if no `best` was evaluated under this protocol, whatever its episodes.
    """
    documents = run.evaluations()
    measure = next((_measure(document) for document in documents if document["fingerprint"] == fingerprint), None)
    alike = [document for document in documents if _measure(document) == measure]
    claims = {document["name"]: _score(document) for document in alike if document.get("purpose") == "selection"}
    best = [document for document in alike if document["name"] == f"seed_{document.get('seed')}_best"]
    best.sort(key=lambda document: document["time"])
    other_episodes = {
        "fresh": [document for document in best if document.get("purpose") == "fresh"],
        "report": [document for document in best if document["fingerprint"] == fingerprint],
    }
    for episodes, measured in other_episodes.items():
        newest_by_seed = {document["seed"]: document for document in measured}
        pairs = []
        for seed, document in newest_by_seed.items():
            selected = f"seed_{seed}_step_{document.get('step')}"
            if selected in claims:
                pairs.append((claims[selected], _score(document)))
        if pairs:
            claimed, scored = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
            return WinnersCurse(claimed, scored, len(pairs), episodes)
    return None


def _measure(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a document measures without its episodes, on which selection, report and fresh episodes agree."""
    protocol = document.get("protocol") or {}
    ignored = {"episodes", "seeds", "purpose"}
    if protocol.get("metric") != "pass_rate":
        ignored.add("scenarios")
    return {key: value for key, value in protocol.items() if key not in ignored}
