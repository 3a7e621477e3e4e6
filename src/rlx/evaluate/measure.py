"""Measuring checkpoints: each seed a reference means, under one protocol, beside what no training scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlx import files
from rlx.config.load import parse, read
from rlx.config.schema import Experiment
from rlx.errors import FileDamaged
from rlx.evaluate.parity import retrace
from rlx.evaluate.policy import rebuild, refuse_named_code
from rlx.evaluate.protocol import EPISODE_SEEDS, Protocol
from rlx.evaluate.rollout import Evaluator, Progress
from rlx.evaluate.yardstick import figures_of, keep, yardsticks
from rlx.runs import checkpoint as checkpoints
from rlx.runs.checkpoint import Checkpoint
from rlx.runs.reference import Reference
from rlx.runs.run import Run

YARDSTICKS = ("random", "untrained")


@dataclass(frozen=True)
class Measurement:
    """The score of one checkpoint; `file` is where it is kept, None where it is nowhere.

    `claimed` is what the checkpoint was said to score before: by its report, or by the evaluation that chose it.
    """

    seed: int | None
    checkpoint: str
    step: int
    fingerprint: str
    figures: Mapping[str, Any]
    yardsticks: Mapping[str, Any]
    file: Path | None
    is_stored: bool = False
    note: str | None = None
    claimed: Mapping[str, Any] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """Return the figures of this checkpoint as JSON-able data."""
        return {
            "seed": self.seed,
            "checkpoint": self.checkpoint,
            "step": self.step,
            **self.figures,
            **self.yardsticks,
            "stored": self.is_stored,
            **({"note": self.note} if self.note else {}),
            **({"claimed": self.claimed} if self.claimed else {}),
        }


def protocol_for(
    reference: Reference,
    *,
    root: Path,
    episodes: int | None = None,
    like: Run | None = None,
    file: Path | None = None,
    is_fresh: bool = False,
) -> Protocol:
    """Return the report protocol of a reference's own config, of another run's (`like`) or of a config `file`.

    A fresh one has the same but for its episodes: they are the run's next unused ones.
    """
    experiment = read(file) if file is not None else _experiment(reference, like)
    if not is_fresh:
        return Protocol.of(experiment, root=root, purpose="report", episodes=episodes)
    first = _fresh_used(reference.run) if reference.run else 0
    return Protocol.of(experiment, root=root, purpose="fresh", episodes=episodes, first=first)


def _experiment(reference: Reference, like: Run | None) -> Experiment:
    run = like or reference.run
    if run is not None:
        return parse(run.config, source=f"{run.name}/config_snapshot.yaml")
    assert reference.path is not None
    foreign = checkpoints.read(reference.path, with_replay=False)
    refuse_named_code(foreign)
    return parse(foreign.config, source=f"{reference.path}/manifest.json")


def _fresh_used(run: Run) -> int:
    """Return how many of the fresh episodes earlier evaluations of this run have used."""
    last = [document["protocol"]["seeds"][1] for document in run.evaluations() if document.get("purpose") == "fresh"]
    return max(last, default=EPISODE_SEEDS["fresh"].start - 1) + 1 - EPISODE_SEEDS["fresh"].start


def measure(
    reference: Reference,
    protocol: Protocol,
    *,
    default: str = "latest",
    seed: int | None = None,
    is_again: bool = False,
    progress: Progress | None = None,
) -> Iterator[Measurement]:
    """Evaluate the checkpoint of every seed meant that has it; what belongs to a run is kept in it.

    A score that is kept already, of the same checkpoint under the same protocol, is not measured again unless asked.
    """
    paths, _ = reference.present(default=default, seed=seed)
    with Evaluator(protocol, progress=progress) as evaluator:
        for number, path in paths.items():
            checkpoint = checkpoints.read(path, with_replay=False)
            place = _place(reference, protocol, number, path.name)
            found = None if place is None or is_again else _stored(place, checkpoint, number)
            yield found or _measured(evaluator, checkpoint, number, run=reference.run)


def _place(reference: Reference, protocol: Protocol, seed: int | None, name: str) -> Path | None:
    if reference.run is None:
        return None
    return reference.run.path / "eval" / protocol.fingerprint() / f"seed_{seed}_{name}.json"


def _stored(path: Path, checkpoint: Checkpoint, seed: int | None) -> Measurement | None:
    """Return what is kept of this checkpoint; None where there is nothing, or of other weights."""
    try:
        document = files.read_json(path)
    except (OSError, FileDamaged):
        return None
    if (document.get("step"), document.get("identity")) != (checkpoint.step, checkpoint.identity):
        return None
    beside = {key: document[key] for key in YARDSTICKS if key in document}
    figures = {key: value for key, value in figures_of(document).items() if key not in beside}
    note = figures.pop("note", None)
    return Measurement(seed, checkpoint.path.name, checkpoint.step, path.parent.name, figures, beside, path, True, note)


def _measured(evaluator: Evaluator, checkpoint: Checkpoint, seed: int | None, *, run: Run | None) -> Measurement:
    policy = rebuild(checkpoint)
    note = retrace(checkpoint, evaluator.env, evaluator.protocol)
    evaluator.refuse_misfit(policy)
    evaluation = evaluator.evaluate(policy)
    beside = yardsticks(evaluator, run.path if run else None, seed=seed)
    name = checkpoint.path.name
    document = {
        **evaluation.document(), **beside, **({"note": note} if note else {}),
        "seed": seed, "checkpoint": name, "step": checkpoint.step, "identity": checkpoint.identity,
    }  # fmt: skip
    file = keep(run.path, evaluation.fingerprint, f"seed_{seed}_{name}", document) if run else None
    claimed = _claimed(run, seed, checkpoint) if run and evaluator.protocol.purpose == "fresh" else {}
    return Measurement(
        seed, name, checkpoint.step, evaluation.fingerprint, evaluation.summary(), beside, file, False, note, claimed
    )


def _claimed(run: Run, seed: int | None, checkpoint: Checkpoint) -> dict[str, Any]:
    """Return what the checkpoint was said to score: by the evaluation that chose it, else by its newest report."""
    name = checkpoint.path.name
    wanted = (
        ("selection", f"seed_{seed}_step_{checkpoint.step}") if name == "best" else ("report", f"seed_{seed}_{name}")
    )
    found = [one for one in run.evaluations() if (one.get("purpose"), one["name"]) == wanted]
    if not found:
        return {}
    newest = max(found, key=lambda document: float(document["time"]))
    return {"score": files.number(newest.get("score", newest["mean"])), "purpose": newest["purpose"]}
