"""The comparable figures of an attempt: score with interval, solve rate, gain, stability, complexity, speed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean, pstdev
from typing import Any

from rlx import files
from rlx.compare.stats import bootstrap_interval
from rlx.errors import RlxError
from rlx.launch.study_jobs.training_proof import TrainingProof, run_proofs
from rlx.loop.lab.attempt import Attempt
from rlx.loop.lab.lab_folder import Lab
from rlx.loop.lab.lesson import evidence_files
from rlx.runs.checkpoints.checkpoint import UNTRAINED
from rlx.runs.run import Run
from rlx.study.study_folder import Study

SOLVED = ("success_rate", "pass_rate")


def attempt_figures(lab: Lab, attempt: Attempt) -> dict[str, Any]:
    """Return the figures of a tried candidate, from its evidence and its runs; empty if it was never measured."""
    if not attempt.candidate:
        return {}
    study = lab.study_at(attempt.rung)
    documents = [
        files.read_json(path) for path in evidence_files(study, attempt.candidate) if path.parent.name == "trial"
    ]
    scores = [float(document["score"]) for document in documents if files.is_number(document.get("score"))]
    if not scores:
        return {}
    proofs = [proof for run in _runs(study, attempt.candidate) for proof in run_proofs(run)]
    interval = (
        bootstrap_interval(lambda drawn: drawn.mean((1, 2)), [[score] for score in scores]) if len(scores) > 1 else None
    )
    mean = fmean(scores)
    seconds = sum(proof.seconds for proof in proofs)
    return {
        "seeds": len(scores),
        "interval": [interval.low, interval.high] if interval else None,
        "solve_rate": _mean_figure(documents, SOLVED),
        "eval_return": _mean_figure(documents, ("return",)),
        "learning_gain": _learning_gain(study, attempt.candidate, documents),
        "stability": max(0.0, min(1.0, 1.0 - pstdev(scores) / (abs(mean) + 1.0))),
        "complexity": {"diff_lines": attempt.notes.get("lines"), "parameters": _first(documents, "parameters")},
        "steps_per_second": sum(proof.steps for proof in proofs) / seconds if seconds else None,
        "proof": _proof(proofs),
        "level": _first(documents, "level"),
    }


def _runs(study: Study, candidate: str) -> list[Run]:
    jobs = study.state().jobs_of(candidate, "trial")
    return [Run(study.root / "runs" / str(job.run)) for job in jobs if job.run]


def _mean_figure(documents: list[dict[str, Any]], names: tuple[str, ...]) -> float | None:
    for name in names:
        values = [document["figures"][name] for document in documents if name in document.get("figures", {})]
        if values:
            return fmean(values)
    return None


def _first(documents: list[dict[str, Any]], name: str) -> Any:
    return next((document[name] for document in documents if name in document), None)


def _learning_gain(study: Study, candidate: str, documents: list[dict[str, Any]]) -> float | None:
    """Return the final return minus the untrained policy's, as the training itself measured both."""
    gains = []
    for run in _runs(study, candidate):
        by_name = dict(_evaluations(run))
        for seed in run.seeds:
            before = by_name.get(f"seed_{seed.number}_{UNTRAINED}")
            after = by_name.get(f"seed_{seed.number}_latest")
            if before is not None and after is not None:
                gains.append(after - before)
    return fmean(gains) if gains else None


def _evaluations(run: Run) -> Iterator[tuple[str, float]]:
    for path in (run.path / "eval").glob("*/*.json"):
        try:
            yield path.stem, float(files.read_json(path)["mean"])
        except (OSError, ValueError, KeyError, TypeError, RlxError):
            continue


def _proof(proofs: list[TrainingProof]) -> Mapping[str, Any]:
    return {
        "steps": sum(proof.steps for proof in proofs),
        "planned": sum(proof.planned for proof in proofs),
        "weights_moved": all(proof.has_moved is not False for proof in proofs),
        "seconds": round(sum(proof.seconds for proof in proofs), 3),
        "problems": [problem for proof in proofs for problem in proof.problems],
    }
