"""Measuring checkpoints: each seed a reference means, under one protocol, beside what no training scores."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlx import files
from rlx.config.load import parse, read
from rlx.config.schema import Experiment
from rlx.errors import FileDamaged, UsageError
from rlx.evaluate.parity import retrace
from rlx.evaluate.policy import Policy, rebuild, refuse_named_code
from rlx.evaluate.protocol import EPISODE_SEEDS, Protocol
from rlx.evaluate.rollout import Evaluator, Progress
from rlx.evaluate.sources import edited
from rlx.evaluate.trajectory import SUFFIX, encode
from rlx.evaluate.yardstick import figures_of, keep, unkept, yardsticks
from rlx.runs import checkpoint as checkpoints
from rlx.runs import store
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


def refuse_opaque(run: Run | None) -> None:
    """Refuse a run whose policies only its own program can load."""
    if run is None or not run.is_opaque:
        return
    by, hint = ("a script of your own", "score it in the script: run.evaluate(policy)")
    if not run.is_script:
        by, hint = ("a command of your own", "a study measures it with the repository's own evaluation")
    raise UsageError(f"{run.name} is trained by {by}: rlx cannot open its checkpoints", hint=hint)


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
    refuse_opaque(reference.run)
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
    fresh = [document for document in run.evaluations() if document.get("purpose") == "fresh"]
    last = [row["seed"] for document in fresh for row in document["episodes"]]
    return max(last, default=EPISODE_SEEDS["fresh"].start - 1) + 1 - EPISODE_SEEDS["fresh"].start


def measure(
    reference: Reference,
    protocol: Protocol,
    *,
    default: str = "latest",
    seed: int | None = None,
    is_again: bool = False,
    keeps_trajectories: bool = False,
    progress: Progress | None = None,
) -> Iterator[Measurement]:
    """Evaluate the checkpoint of every seed meant that has it; what belongs to a run is kept in it.

    A score that is kept already, of the same checkpoint under the same protocol, is not measured again unless asked, or
    unless trajectories are wanted that are not kept beside it.
    """
    paths, _ = reference.present(default=default, seed=seed)
    read = {number: checkpoints.read(path, with_replay=False) for number, path in paths.items()}
    known = {
        number: found
        for number, checkpoint in read.items()
        if (place := _place(reference, protocol, number, checkpoint.path.name))
        and not is_again
        and (not keeps_trajectories or place.with_suffix(SUFFIX).exists())
        and (found := _stored(place, checkpoint, number))
    }
    asked = [number for number in read if number not in known]
    count = len(asked) + unkept(protocol, reference.run.path if reference.run else None, seeds=asked)
    told = _overall(progress, count) if progress else None
    with Evaluator(protocol, progress=told, keeps_trajectories=keeps_trajectories) as evaluator:
        for count, (number, checkpoint) in enumerate(read.items()):
            episodes_of = count if protocol.purpose == "fresh" else number or 0
            yield known.get(number) or _measured(evaluator, checkpoint, number, episodes_of, run=reference.run)


def _overall(progress: Progress, evaluations: int) -> Progress:
    """Return what counts the episodes of several evaluations as one whole."""
    before = 0

    def tell(done: int, total: int) -> None:
        nonlocal before
        progress(before + done, evaluations * total)
        before += total if done == total else 0

    return tell


def fitting(
    evaluator: Evaluator, checkpoint: Checkpoint, *, named: Collection[str] | None = None
) -> tuple[Policy, str | None]:
    """Rebuild a policy for the evaluator's environment, and return what must be said about the two.

    Refuses one that acts otherwise than in training, or whose environment shows otherwise what it saw there. `named` is
    the code that it may run (see `rebuild`).
    """
    policy = rebuild(checkpoint, named=named)
    note = retrace(checkpoint, evaluator.env, evaluator.protocol)
    evaluator.refuse_misfit(policy)
    return policy, note


def changed_since_training(run: Run, seed: int | None, protocol: Protocol) -> str | None:
    """Say which project files behind a protocol are others than when the seed was first evaluated, by its training."""
    of_seed = [one for one in run.evaluations() if one["name"].startswith(f"seed_{seed}_")]
    first = sorted(of_seed, key=lambda document: float(document["time"]))[:1]
    names = [name for name in edited(first, root=protocol.root) if name in protocol.content["files"]]
    if not names:
        return None
    return f"{', '.join(names)} changed since training: the numbers belong to the changed environment"


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


def _measured(
    evaluator: Evaluator, checkpoint: Checkpoint, seed: int | None, episodes_of: int, *, run: Run | None
) -> Measurement:
    policy, shown = fitting(evaluator, checkpoint)
    changed = changed_since_training(run, seed, evaluator.protocol) if run else None
    note = "; ".join(filter(None, (shown, changed))) or None
    evaluation = evaluator.evaluate(policy, seed=episodes_of)
    beside = yardsticks(evaluator, run.path if run else None, seed=seed)
    name = checkpoint.path.name
    document = {
        **evaluation.document(), **beside, **({"note": note} if note else {}),
        "seed": seed, "checkpoint": name, "step": checkpoint.step, "identity": checkpoint.identity,
    }  # fmt: skip
    file = keep(run.path, evaluation.fingerprint, f"seed_{seed}_{name}", document) if run else None
    if file is not None and evaluation.trajectories:
        store.save_trajectories(file.with_suffix(SUFFIX), encode(evaluation.trajectories))
    claimed = {}
    if run and evaluator.protocol.purpose == "fresh":
        claimed = _claimed(run, seed, checkpoint, metric=evaluator.protocol.metric)
    return Measurement(
        seed, name, checkpoint.step, evaluation.fingerprint, evaluation.summary(), beside, file, False, note, claimed
    )


def _claimed(run: Run, seed: int | None, checkpoint: Checkpoint, *, metric: str) -> dict[str, Any]:
    """Return what the checkpoint was said to score in this metric: when it was chosen, else by its newest report."""
    name = checkpoint.path.name
    wanted = (
        ("selection", f"seed_{seed}_step_{checkpoint.step}") if name == "best" else ("report", f"seed_{seed}_{name}")
    )
    key = "mean" if metric == "return" else metric
    found = [one for one in run.evaluations() if (one.get("purpose"), one["name"]) == wanted and key in one]
    if not found:
        return {}
    newest = max(found, key=lambda document: float(document["time"]))
    return {"score": files.number(newest[key]), "purpose": newest["purpose"]}
