"""How robust a run's trained policies are: probe one environment parameter or stress them, and store the result."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx import files
from rlx.compare.robustness import brittleness, feasible_range
from rlx.compare.robustness.brittleness import Drop
from rlx.compare.robustness.feasible_range import Feasibility
from rlx.evaluate.robustness.conditions import EPISODES, ConditionScores, RobustnessTrial
from rlx.evaluate.robustness.env_parameter import EnvParameter
from rlx.evaluate.robustness.parameter_sweep import ParameterSweep, count_evaluations, run_sweep
from rlx.evaluate.robustness.stress import CORNER, StressPlan, StressResults, run_stress
from rlx.number_format import counted
from rlx.runs import store
from rlx.runs.run_reference import Reference

Progress = Callable[[int, int], None]
_DIGEST_CHARACTERS = 8


@dataclass(frozen=True)
class ParameterProbe:
    """The measurements of one parameter, their judgement, and the file that stores both (None if it could not)."""

    sweep: ParameterSweep
    feasibility: Feasibility
    document: Mapping[str, Any]
    file: Path | None


@dataclass(frozen=True)
class StressReport:
    """The measurements under each disturbance, their judgement, and the file that stores both (None if not stored)."""

    results: StressResults
    drops: tuple[Drop, ...]
    document: Mapping[str, Any]
    file: Path | None


def probe(
    reference: Reference,
    parameters: Sequence[EnvParameter],
    *,
    root: Path,
    episodes: int = EPISODES,
    share: float = feasible_range.SHARE,
    progress: Progress | None = None,
) -> list[ParameterProbe]:
    """Vary each parameter by itself, evaluate every seed's policy at each value, and store it in the run's folder."""
    with RobustnessTrial(reference, root=root, episodes=episodes, progress=progress) as trial:
        trial.planned = sum(count_evaluations(parameter, len(trial.policies)) for parameter in parameters)
        return [_probe(trial, run_sweep(trial, parameter), share) for parameter in parameters]


def _probe(trial: RobustnessTrial, found: ParameterSweep, share: float) -> ParameterProbe:
    feasibility = feasible_range.feasible(found, share=share)
    parameter = found.parameter
    document = {
        **_about(trial),
        "parameter": parameter.name,
        "kind": parameter.kind,
        "nominal": found.nominal,
        "trained": found.trained,
        "share": share,
        "feasible": {"low": feasibility.low, "high": feasibility.high},
        "points": [point.document() for point in feasibility.points],
        "scores": _scores({None: found.at_nominal, **dict(found.at)}),
        "notes": [*feasibility.notes, *trial.notes],
    }
    request = [parameter.name, list(parameter.values), share]
    return ParameterProbe(found, feasibility, document, _store(trial, "probes", parameter.name, request, document))


def stress(
    reference: Reference,
    plan: StressPlan,
    *,
    root: Path,
    episodes: int = EPISODES,
    limit: float = brittleness.BRITTLE,
    progress: Progress | None = None,
) -> StressReport:
    """Disturb every seed's policy in each planned way, and store the result in the run's folder."""
    with RobustnessTrial(reference, root=root, episodes=episodes, progress=progress) as trial:
        trial.planned = plan.count(len(trial.policies))
        found = run_stress(trial, plan)
        drops = brittleness.drops(found, limit=limit)
        nominal = found.nominal
        outcomes: dict[str | None, ConditionScores] = {None: nominal}
        outcomes |= {f"{condition.name}={condition.strength}": condition.outcome for condition in found.conditions}
        document = {
            **_about(trial),
            "limit": limit,
            "nominal": {"mean": sum(nominal.scores.values()) / len(nominal.scores), "random": nominal.random},
            "conditions": [drop.document() for drop in drops],
            "scores": _scores(outcomes),
            "left_out": dict(found.left_out),
            "notes": [*_stress_notes(found, drops), *trial.notes],
        }  # fmt: skip
        factors = [[factor.name, list(factor.values)] for factor in plan.factors]
        request = [{name: list(values) for name, values in plan.strengths.items()}, factors, plan.has_corners, limit]
        return StressReport(found, drops, document, _store(trial, "stress", "stress", request, document))


def _stress_notes(found: StressResults, drops: Sequence[Drop]) -> list[str]:
    notes = ["each condition was tested alone: combinations were not tested"]
    if any(drop.name == CORNER for drop in drops):
        notes = ["apart from the corners, each condition was tested alone: other combinations were not tested"]
    if all(drop.drop is None for drop in drops):
        notes.append("drops are undefined: the policies do not beat the random one")
    count = len(found.nominal.scores)
    if count < 3:
        notes.append(f"{counted(count, 'training seed')}: rlx cannot say how other seeds would do")
    return notes


def _about(trial: RobustnessTrial) -> dict[str, Any]:
    """Return which policies were tried, under which protocol and when."""
    return {
        "run": trial.run.name,
        "env": trial.protocol.env.id,
        "metric": trial.protocol.metric,
        "episodes": trial.protocol.episodes,
        "fingerprint": trial.protocol.fingerprint(),
        "time": time.time(),
        "seeds": {
            str(seed): {"checkpoint": name, "step": step, "identity": identity}
            for seed, (name, step, identity) in trial.checkpoints.items()
        },
    }


def _scores(outcomes: Mapping[Any, ConditionScores]) -> list[dict[str, Any]]:
    """Return every seed's score under every condition. The condition None is the undisturbed one."""
    return [
        {"at": at, "seeds": {str(seed): score for seed, score in outcome.scores.items()}, "random": outcome.random}
        for at, outcome in outcomes.items()
    ]


def _store(trial: RobustnessTrial, kind: str, name: str, request: object, document: dict[str, Any]) -> Path | None:
    """Store a document under a name that depends on the request, the weights and the protocol."""
    about = [request, document["fingerprint"], document["seeds"]]
    digest = files.sha256(json.dumps(about, sort_keys=True).encode())[:_DIGEST_CHARACTERS]
    plain = re.sub(r"[^A-Za-z0-9.]+", "_", name)
    return store.save_robustness(trial.run.path, kind, f"{plain}_{digest}", document)
