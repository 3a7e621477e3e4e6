"""Measuring checkpoints: each seed a reference means, under one protocol, beside what no training scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx.config.load import parse
from rlx.evaluate.parity import retrace
from rlx.evaluate.policy import rebuild, refuse_named_code
from rlx.evaluate.protocol import Protocol
from rlx.evaluate.rollout import Evaluation, Evaluator
from rlx.evaluate.yardstick import yardsticks
from rlx.runs import checkpoint as checkpoints
from rlx.runs import store
from rlx.runs.reference import Reference
from rlx.runs.run import Run


@dataclass(frozen=True)
class Measurement:
    """The score of one checkpoint; `file` is where it was kept, None for a checkpoint outside any run."""

    seed: int | None
    checkpoint: str
    step: int
    evaluation: Evaluation
    yardsticks: Mapping[str, Any]
    file: Path | None
    note: str | None = None

    def summary(self) -> dict[str, Any]:
        """Return the figures of this checkpoint as JSON-able data."""
        named = {"seed": self.seed, "checkpoint": self.checkpoint, "step": self.step}
        noted = {"note": self.note} if self.note else {}
        return {**named, **self.evaluation.summary(), **self.yardsticks, **noted}


def protocol_for(reference: Reference, *, root: Path, episodes: int | None = None, like: Run | None = None) -> Protocol:
    """Return the report protocol of a reference's own config, or of another run's (`like`)."""
    run = like or reference.run
    if run is not None:
        config, source = run.config, f"{run.name}/config_snapshot.yaml"
    else:
        assert reference.path is not None
        foreign = checkpoints.read(reference.path, with_replay=False)
        refuse_named_code(foreign)
        config, source = foreign.config, f"{reference.path}/manifest.json"
    return Protocol.of(parse(config, source=source), root=root, purpose="report", episodes=episodes)


def measure(
    reference: Reference, protocol: Protocol, *, default: str = "latest", seed: int | None = None
) -> Iterator[Measurement]:
    """Evaluate the checkpoint of every seed meant, one after the other; what belongs to a run is kept in it."""
    paths = reference.checkpoints(default=default, seed=seed)
    with Evaluator(protocol) as evaluator:
        for number, path in paths.items():
            checkpoint = checkpoints.read(path, with_replay=False)
            policy = rebuild(checkpoint)
            note = retrace(checkpoint, evaluator.env, protocol)
            evaluator.refuse_misfit(policy)
            evaluation = evaluator.evaluate(policy)
            beside = yardsticks(evaluator, reference.run.path if reference.run else None, seed=number)
            document = {
                **evaluation.document(), **beside, **({"note": note} if note else {}),
                "seed": number, "checkpoint": path.name, "step": checkpoint.step,
            }  # fmt: skip
            file = None
            if reference.run is not None:
                name = f"seed_{number}_{path.name}"
                file = store.save_evaluation(reference.run.path, evaluation.fingerprint, name, document)
            yield Measurement(number, path.name, checkpoint.step, evaluation, beside, file, note)
