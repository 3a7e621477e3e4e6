"""How robust a run's trained policies are: probe one parameter of the world, stress them, and keep what was found."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx import files
from rlx.compare import brittle, feasible
from rlx.compare.brittle import Drop
from rlx.compare.feasible import Feasibility
from rlx.evaluate.parameter import Parameter
from rlx.evaluate.probe import Sweep, count, sweep
from rlx.evaluate.stress import CORNER, Battery, Plan, battery
from rlx.evaluate.trial import EPISODES, Outcome, Trial
from rlx.runs import store
from rlx.runs.reference import Reference

Progress = Callable[[int, int], None]
_DIGEST_CHARACTERS = 8


@dataclass(frozen=True)
class Probe:
    """What was measured of one parameter, how it is judged, and where both are kept (None: nowhere)."""

    sweep: Sweep
    feasibility: Feasibility
    document: Mapping[str, Any]
    file: Path | None


@dataclass(frozen=True)
class Stress:
    """What was measured under each disturbance, how it is judged, and where both are kept (None: nowhere)."""

    battery: Battery
    drops: tuple[Drop, ...]
    document: Mapping[str, Any]
    file: Path | None


def probe(
    reference: Reference,
    parameters: Sequence[Parameter],
    *,
    root: Path,
    episodes: int = EPISODES,
    share: float = feasible.SHARE,
    progress: Progress | None = None,
) -> list[Probe]:
    """Vary each parameter by itself, evaluate every seed's policy at each value, and keep it in the run's folder."""
    with Trial(reference, root=root, episodes=episodes, progress=progress) as trial:
        trial.planned = sum(count(parameter, len(trial.policies)) for parameter in parameters)
        return [_probed(trial, sweep(trial, parameter), share) for parameter in parameters]


def _probed(trial: Trial, found: Sweep, share: float) -> Probe:
    judged = feasible.feasible(found, share=share)
    parameter = found.parameter
    document = {
        **_about(trial),
        "parameter": parameter.name,
        "kind": parameter.kind,
        "nominal": found.nominal,
        "trained": found.trained,
        "share": share,
        "feasible": {"low": judged.low, "high": judged.high},
        "points": [point.document() for point in judged.points],
        "scores": _scores({None: found.at_nominal, **dict(found.at)}),
        "notes": [*judged.notes, *trial.notes],
    }
    asked = [parameter.name, list(parameter.values), share]
    return Probe(found, judged, document, _keep(trial, "probes", parameter.name, asked, document))


def stress(
    reference: Reference,
    plan: Plan,
    *,
    root: Path,
    episodes: int = EPISODES,
    limit: float = brittle.BRITTLE,
    progress: Progress | None = None,
) -> Stress:
    """Disturb every seed's policy in each planned way, and keep it in the run's folder."""
    with Trial(reference, root=root, episodes=episodes, progress=progress) as trial:
        trial.planned = plan.count(len(trial.policies))
        found = battery(trial, plan)
        judged = brittle.drops(found, limit=limit)
        nominal = found.nominal
        document = {
            **_about(trial),
            "limit": limit,
            "nominal": {"mean": sum(nominal.scores.values()) / len(nominal.scores), "random": nominal.random},
            "conditions": [one.document() for one in judged],
            "scores": _scores({None: nominal, **_named(found)}),
            "left_out": dict(found.left_out),
            "notes": [*_stress_notes(found, judged), *trial.notes],
        }  # fmt: skip
        factors = [[factor.name, list(factor.values)] for factor in plan.factors]
        asked = [{name: list(values) for name, values in plan.strengths.items()}, factors, plan.has_corners, limit]
        return Stress(found, judged, document, _keep(trial, "stress", "stress", asked, document))


def _stress_notes(found: Battery, judged: Sequence[Drop]) -> list[str]:
    has_corners = any(one.name == CORNER for one in judged)
    notes = [
        "beside the corners, each condition alone: other combinations were not tested"
        if has_corners
        else "each condition alone: several at once were not tested"
    ]
    if all(one.drop is None for one in judged):
        notes.append("drops are undefined: the policies are no better than the random one")
    count = len(found.nominal.scores)
    if count < 3:
        notes.append(f"{count} training seed{'' if count == 1 else 's'}: how others would do is not known")
    return notes


def _named(found: Battery) -> dict[str, Outcome]:
    return {f"{one.name}={one.strength}": one.outcome for one in found.conditions}


def _about(trial: Trial) -> dict[str, Any]:
    """Return what was tried, how and when."""
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


def _scores(outcomes: Mapping[Any, Outcome]) -> list[dict[str, Any]]:
    """Return every seed's score under every condition; the first, None, is the undisturbed one."""
    return [
        {"at": at, "seeds": {str(seed): score for seed, score in one.scores.items()}, "random": one.random}
        for at, one in outcomes.items()
    ]


def _keep(trial: Trial, kind: str, name: str, asked: object, document: dict[str, Any]) -> Path | None:
    """Keep it under a name that what was asked, of which weights, under which protocol, decides."""
    about = [asked, document["fingerprint"], document["seeds"]]
    digest = files.sha256(json.dumps(about, sort_keys=True).encode())[:_DIGEST_CHARACTERS]
    plain = re.sub(r"[^A-Za-z0-9.]+", "_", name)
    return store.save_robustness(trial.run.path, kind, f"{plain}_{digest}", document)
