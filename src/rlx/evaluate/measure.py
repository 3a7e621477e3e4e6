"""Measure checkpoints: each seed of a reference under one protocol, next to the random and the untrained policy."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlx import files
from rlx.config.load import parse, read
from rlx.config.schema import Experiment
from rlx.errors import FileDamaged, UsageError
from rlx.evaluate.env_sources import changed_files
from rlx.evaluate.parity import compare_replay
from rlx.evaluate.policy import Policy, rebuild, refuse_named_code
from rlx.evaluate.protocol import EPISODE_SEEDS, Protocol
from rlx.evaluate.reference_policies import count_missing, figures_of, keep, reference_scores
from rlx.evaluate.rollout import Evaluator, Progress
from rlx.evaluate.stored_code import stored_experiment
from rlx.evaluate.trajectory import SUFFIX, encode
from rlx.runs import store
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.runs.checkpoints.checkpoint import Checkpoint
from rlx.runs.run import Run
from rlx.runs.run_reference import Reference

REFERENCE_POLICIES = ("random", "untrained")


@dataclass(frozen=True)
class Measurement:
    """The score of one checkpoint. `file` is where it is stored, or None.

    `claimed` is the score that the checkpoint had before: in its report, or in the evaluation that selected it.
    """

    seed: int | None
    checkpoint: str
    step: int
    fingerprint: str
    figures: Mapping[str, Any]
    reference_scores: Mapping[str, Any]
    file: Path | None
    is_stored: bool = False
    note: str | None = None
    claimed: Mapping[str, Any] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """Return the figures of this checkpoint as JSON-able data."""
        names = {"seed": self.seed, "checkpoint": self.checkpoint, "step": self.step}
        summary = {**names, **self.figures, **self.reference_scores, "stored": self.is_stored}
        if self.note:
            summary["note"] = self.note
        if self.claimed:
            summary["claimed"] = self.claimed
        return summary


def refuse_unloadable(run: Run | None) -> None:
    """Refuse a run whose policies only its own program can load."""
    if run is None or not run.is_opaque:
        return
    program = "a command of your own"
    hint = "a study measures it with the repository's own evaluation"
    if run.is_imported:
        message = f"{run.name} was imported: rlx has its metrics and not its policies"
        raise UsageError(message, hint=f"rlx compare {run.name} OTHER --metric NAME")
    if run.is_script:
        program = "a script of your own"
        hint = "score it in the script: run.evaluate(policy)"
    raise UsageError(f"{run.name} is trained by {program}: rlx cannot open its checkpoints", hint=hint)


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

    A fresh protocol differs only in its episodes: they are the run's next unused ones.
    """
    refuse_unloadable(reference.run)
    experiment = _experiment(reference, like, root=root) if file is None else read(file)
    if not is_fresh:
        return Protocol.of(experiment, root=root, purpose="report", episodes=episodes)
    return Protocol.of(experiment, root=root, purpose="fresh", episodes=episodes, first=_fresh_used(reference.run))


def _experiment(reference: Reference, like: Run | None, *, root: Path) -> Experiment:
    run = like or reference.run
    if run is not None:
        return stored_experiment(run, root=root)
    assert reference.path is not None
    foreign = checkpoints.read(reference.path, with_replay=False)
    refuse_named_code(foreign)
    return parse(foreign.config, source=f"{reference.path}/manifest.json")


def _fresh_used(run: Run | None) -> int:
    """Return how many fresh episodes earlier evaluations of a run have used."""
    if run is None:
        return 0
    start = EPISODE_SEEDS["fresh"].start
    fresh = [document for document in run.evaluations() if document.get("purpose") == "fresh"]
    return max((row["seed"] + 1 for document in fresh for row in document["episodes"]), default=start) - start


def measure(
    reference: Reference,
    protocol: Protocol,
    *,
    seed: int | None = None,
    is_again: bool = False,
    keeps_trajectories: bool = False,
    progress: Progress | None = None,
) -> Iterator[Measurement]:
    """Evaluate the latest checkpoint of every seed of a reference that has one. A run keeps its scores.

    rlx does not repeat a stored score of the same checkpoint under the same protocol, unless `is_again` is set or
    trajectories are requested that are not stored.
    """
    run = reference.run
    paths, _ = reference.present(default="latest", seed=seed)
    read = {number: checkpoints.read(path, with_replay=False) for number, path in paths.items()}
    stored: dict[int | None, Measurement] = {}
    if run is not None and not is_again:
        for number, checkpoint in read.items():
            path = run.path / "eval" / protocol.fingerprint() / f"seed_{number}_{checkpoint.path.name}.json"
            measurement = _stored(path, checkpoint, number)
            if measurement and (not keeps_trajectories or path.with_suffix(SUFFIX).exists()):
                stored[number] = measurement
    missing = [number for number in read if number not in stored]
    count = len(missing) + count_missing(protocol, run.path if run else None, seeds=missing)
    if progress is not None:
        progress = _overall(progress, count)
    with Evaluator(protocol, progress=progress, keeps_trajectories=keeps_trajectories) as evaluator:
        for index, (number, checkpoint) in enumerate(read.items()):
            # Fresh episodes are counted per evaluation; others belong to the training seed.
            episodes_of = index if protocol.purpose == "fresh" else number or 0
            yield stored.get(number) or _measure(evaluator, checkpoint, number, episodes_of, run=run)


def _overall(progress: Progress, evaluations: int) -> Progress:
    """Return a progress function that counts the episodes of several evaluations together."""
    before = 0

    def report(done: int, total: int) -> None:
        nonlocal before
        progress(before + done, evaluations * total)
        if done == total:
            before += total

    return report


def rebuild_fitting(
    evaluator: Evaluator, checkpoint: Checkpoint, *, named: Collection[str] | None = None
) -> tuple[Policy, str | None]:
    """Rebuild a policy for the evaluator's environment. Return it with a note about the two, if one is needed.

    Raises if the policy acts differently than in training, or if the environment's observations do not fit. `named` is
    the code that it may run (see `rebuild`).
    """
    policy = rebuild(checkpoint, named=named)
    note = compare_replay(checkpoint, evaluator.env, evaluator.protocol)
    evaluator.refuse_misfit(policy)
    return policy, note


def changed_files_note(run: Run, seed: int | None, protocol: Protocol) -> str | None:
    """Return a note on the protocol's project files that have changed since the seed's first evaluation."""
    evaluations = [document for document in run.evaluations() if document["name"].startswith(f"seed_{seed}_")]
    first = sorted(evaluations, key=lambda document: float(document["time"]))[:1]
    names = [name for name in changed_files(first, root=protocol.root) if name in protocol.content["files"]]
    if not names:
        return None
    return f"{', '.join(names)} changed since training: the numbers belong to the changed environment"


def _stored(path: Path, checkpoint: Checkpoint, seed: int | None) -> Measurement | None:
    """Return the stored score of this checkpoint, or None if there is none or it belongs to other weights."""
    try:
        document = files.read_json(path)
    except (OSError, FileDamaged):
        return None
    if document.get("step") != checkpoint.step or document.get("identity") != checkpoint.identity:
        return None
    scores = {key: document[key] for key in REFERENCE_POLICIES if key in document}
    figures = {key: value for key, value in figures_of(document).items() if key not in scores}
    note = figures.pop("note", None)
    return Measurement(seed, checkpoint.path.name, checkpoint.step, path.parent.name, figures, scores, path, True, note)


def _measure(
    evaluator: Evaluator, checkpoint: Checkpoint, seed: int | None, episodes_of: int, *, run: Run | None
) -> Measurement:
    policy, note = rebuild_fitting(evaluator, checkpoint)
    if run is not None:
        note = "; ".join(filter(None, (note, changed_files_note(run, seed, evaluator.protocol)))) or None
    evaluation = evaluator.evaluate(policy, seed=episodes_of)
    scores = reference_scores(evaluator, run.path if run else None, seed=seed)
    name = checkpoint.path.name
    measurement = Measurement(
        seed, name, checkpoint.step, evaluation.fingerprint, evaluation.summary(), scores, None, note=note
    )
    if run is None:
        return measurement
    document = {**evaluation.document(), **scores, "seed": seed, "checkpoint": name, "step": checkpoint.step}
    document["identity"] = checkpoint.identity
    if note:
        document["note"] = note
    file = keep(run.path, evaluation.fingerprint, f"seed_{seed}_{name}", document)
    if file is not None and evaluation.trajectories:
        store.save_trajectories(file.with_suffix(SUFFIX), encode(evaluation.trajectories))
    claimed = {}
    if evaluator.protocol.purpose == "fresh":
        claimed = _claimed(run, seed, checkpoint, metric=evaluator.protocol.metric)
    return replace(measurement, file=file, claimed=claimed)


def _claimed(run: Run, seed: int | None, checkpoint: Checkpoint, *, metric: str) -> dict[str, Any]:
    """Return the checkpoint's earlier score in this metric: from its selection if it is `best`, or its last report."""
    purpose = "report"
    name = f"seed_{seed}_{checkpoint.path.name}"
    if checkpoint.path.name == "best":
        purpose = "selection"
        name = f"seed_{seed}_step_{checkpoint.step}"
    key = "mean" if metric == "return" else metric
    documents = [
        document
        for document in run.evaluations()
        if document.get("purpose") == purpose and document["name"] == name and key in document
    ]
    if not documents:
        return {}
    newest = max(documents, key=lambda document: float(document["time"]))
    return {"score": files.number(newest[key]), "purpose": newest["purpose"]}
