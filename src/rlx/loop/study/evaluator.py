"""Score a study's policies with a pinned copy of the baseline's code, at the level of the contract."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from rlx import files
from rlx.config.load import document as plain_config
from rlx.config.schema import Experiment
from rlx.errors import CheckpointInvalid, EvidenceInvalid, NotFound, Refused
from rlx.evaluate.checkpoint_evaluation import EvaluationLimits, EvaluationResult, Subject
from rlx.evaluate.command.command_evaluation import CommandEvaluation, EvalCommand, evaluate_by_command
from rlx.evaluate.episode_metrics import summarize_rows
from rlx.evaluate.sealed.pinned_tree import PinnedTree, pin_tree
from rlx.evaluate.sealed.sealed_evaluation import SealedEvaluation, evaluate_sealed
from rlx.launch.git import worktree
from rlx.launch.study_jobs import study_job
from rlx.launch.study_jobs.checkpoint_hashes import final_checkpoint
from rlx.runs.run import Run, Seed
from rlx.sandbox.self_test import run_self_test
from rlx.study.candidate import candidate_experiment
from rlx.study.contract.contract import Contract
from rlx.study.ledger.records import Draw
from rlx.study.study_folder import UNCHANGED, Study
from rlx.study.task.task import Task

Measuring = Callable[[Sequence[Subject]], Sequence[EvaluationResult]]
LIMITED = frozenset({"time", "memory", "disk", "processes"})
"""The failures of a measurement that passed a limit."""


@dataclass(frozen=True)
class Result:
    """The evaluation of one seed, stored in a file; a policy that failed has no score."""

    seed: int
    file: Path
    document: Mapping[str, Any]


class StudyEvaluator:
    """The evaluator of one study. It trusts nothing that a candidate wrote but its final checkpoint."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.contract: Contract = study.contract()
        self.task: Task = study.task()

    @cached_property
    def pin(self) -> PinnedTree:
        """The approved tree, made from the pinned commit when it is first needed."""
        approved = self._approved()
        try:
            return PinnedTree.open(self.study.evaluator, sha256=approved)
        except NotFound:
            return self._pinned(approved)

    def fresh(self) -> PinnedTree:
        """Pin the baseline's tree again, for an approval."""
        with files.locked(self.study.evaluator):  # others may approve, or look, at this moment
            for path in (self.study.evaluator, self.study.evaluator.with_name("evaluator.json")):
                _remove(path)
            return self._made(self.study.evaluator)

    def _approved(self) -> str | None:
        approval = self.study.state().approval
        return str(approval.event["evaluator"]) if approval and approval.event.get("evaluator") else None

    def _pinned(self, approved: str | None) -> PinnedTree:
        with files.locked(self.study.evaluator):
            made = self._made(self.study.evaluator)
        if approved is not None and made.sha256 != approved:
            raise EvidenceInvalid("the pinned commit gives another evaluator than was approved", hint="rlx study audit")
        return made

    def _made(self, to: Path) -> PinnedTree:
        if self.contract.baseline is None:
            raise Refused(f"{self.study.name} pins no baseline", hint=f"rlx study show {self.study.name}")
        with tempfile.TemporaryDirectory(prefix="rlx-pin-", dir=self.study.folder) as folder:
            tree = Path(folder) / "tree"
            worktree.write_tree(self.study.root, self.contract.baseline.commit, tree)
            return pin_tree(tree, to)

    def verify(self) -> None:
        """Raise if the pinned copy differs from the pinned commit."""
        self.pin.verify()
        again = self.study.folder / f".verify-{os.getpid()}"
        try:
            if self._made(again).sha256 != self.pin.sha256:
                raise EvidenceInvalid("the evaluator's copy is not the pinned commit's tree", hint="rlx study audit")
        finally:
            for path in (again, again.with_name(f"{again.name}.json")):
                _remove(path)

    def measure(self, candidate: str, run: str, expected: Mapping[int, str], draw: Draw, out: Path) -> Iterator[Result]:
        """Measure the final checkpoints of a run's seeds on drawn episodes; `expected` has their recorded hashes."""
        assert self.contract.evaluation is not None
        measure = {"sealed": self._sealed, "pinned": self._pinned_command, "reported": self._reported}
        if self._plays_candidates_env:
            measure["reported"] = self._sealed
        yield from measure[self.contract.evaluation.level](candidate, run, expected, draw, out)

    @property
    def _plays_candidates_env(self) -> bool:
        """Whether candidates build the environment: rlx plays it, but its code is theirs, so the level is reported."""
        assert self.contract.evaluation is not None
        assert self.contract.metric is not None
        is_reported = self.contract.evaluation.level == "reported" and self.contract.metric.source == "evaluator"
        return is_reported and self.task.adapter.kind == "rlx"

    def _pin_of(self, run: str) -> PinnedTree:
        """Return the tree to play in: the approved one, or the candidate's if it builds the environment."""
        if not self._plays_candidates_env:
            return self.pin
        tree = self._tree(run)
        folder = self.study.folder / "built" / tree.name
        folder.parent.mkdir(exist_ok=True)
        with files.locked(folder):
            try:
                return PinnedTree.open(folder)
            except NotFound:
                _remove(folder)
                return pin_tree(tree, folder)

    def _sealed(self, candidate: str, run: str, expected: Mapping[int, str], draw: Draw, out: Path) -> Iterator[Result]:
        """Measure in an environment of rlx's own making; a foreign policy is served by a process of its own."""
        assert self.contract.evaluation is not None
        adapter = self.task.adapter
        seal = SealedEvaluation(
            experiment=plain_config(self._agreed()), pin=self._pin_of(run),
            level=self.contract.evaluation.level, purpose=draw.purpose,  # type: ignore[arg-type]
            first=draw.first, episodes=draw.episodes, python_path=adapter.python_path, policy=adapter.policy,
            policy_root=self._tree(run) if adapter.policy else None,
            reads=self._reads, limits=self._limits, may_go_unenforced=self._may_go_unenforced,
        )  # fmt: skip
        subjects = self._subjects(candidate, run, expected, out)
        yield from self._results(subjects, partial(evaluate_sealed, seal), is_yardstick=_is_yardstick(candidate, out))

    def _agreed(self) -> Experiment:
        """Return the pinned config with the evaluation settings of the contract."""
        assert self.contract.evaluation is not None
        experiment = candidate_experiment.experiment_of(self.task, {}, tree=self.pin.folder)
        played = experiment.eval.model_copy(update={"deterministic": self.contract.evaluation.deterministic})
        return experiment.model_copy(update={"eval": played})

    def _tree(self, run: str) -> Path:
        """Return the code that a run was trained with."""
        return study_job.code_folder(Run(self.study.root / "runs" / run))

    def _pinned_command(
        self, candidate: str, run: str, expected: Mapping[int, str], draw: Draw, out: Path
    ) -> Iterator[Result]:
        """Measure with the repository's own command, from the pinned copy."""
        adapter, metric = self.task.adapter, self.contract.metric
        assert adapter.result is not None
        assert metric is not None
        command = EvalCommand(
            argv=(*adapter.prefix, *adapter.eval), metric=metric.name, names=adapter.result.names,
            python_path=adapter.python_path, policy_files=adapter.policy_files, source=adapter.result,
        )  # fmt: skip
        asked = CommandEvaluation(
            command=command, pin=self.pin, purpose=draw.purpose, first=draw.first,  # type: ignore[arg-type]
            episodes=draw.episodes, worktree=self._tree(run) if adapter.policy_files else None,
            reads=self._reads, limits=self._limits, may_go_unenforced=self._may_go_unenforced,
        )  # fmt: skip
        subjects = self._subjects(candidate, run, expected, out)
        yield from self._results(
            subjects, partial(evaluate_by_command, asked), is_yardstick=_is_yardstick(candidate, out)
        )

    @property
    def _reads(self) -> tuple[Path, ...]:
        return tuple(Path(path) for path in self.contract.hardware.reads) if self.contract.hardware else ()

    @property
    def _limits(self) -> EvaluationLimits:
        assert self.contract.evaluation is not None
        return EvaluationLimits(seconds=self.contract.evaluation.minutes * 60)

    def _subjects(self, candidate: str, run: str, expected: Mapping[int, str], out: Path) -> dict[int, Subject]:
        view = Run(self.study.root / "runs" / run)
        return {
            seed: Subject(_place(view.seed(seed)), sha256, out / f"{candidate}_{seed}.json", seed)
            for seed, sha256 in expected.items()
        }

    def _results(self, subjects: Mapping[int, Subject], measured: Measuring, *, is_yardstick: bool) -> Iterator[Result]:
        """Yield the results. A failure of the candidate is a result; any other failure is raised.

        A policy that exceeds a limit is measured again, because the machine may have been busy; then it is a failure of
        the candidate. The baseline and the head get no such failure, because a failed seed of theirs is replaced.
        """
        for seed, one in zip(subjects, measured(list(subjects.values())), strict=True):
            is_again = not is_yardstick and _took_too_much(one)
            found = measured([subjects[seed]])[0] if is_again else one
            failure = found.failure
            if found.document is not None:
                yield Result(seed, subjects[seed].out, found.document)
            elif failure is not None and (failure.is_policy_fault or (is_again and _took_too_much(found))):
                yield self._failed(seed, subjects[seed].out, failure.code, failure.message)
            elif failure is not None and failure.code == "metric":
                raise EvidenceInvalid(f"metric: {failure.message}", hint=self._names_another)
            else:
                found.require_document()

    @property
    def _names_another(self) -> str:
        """What to do if the evaluation does not report the metric."""
        return (
            f"name a reported figure (rlx study amend {self.study.name} -s metric.name=NAME), or map its figures "
            f"(rlx task refresh {self.study.task_name} -s adapter.result.names.OURS=THEIRS)"
        )

    def _failed(self, seed: int, file: Path, code: str, says: str) -> Result:
        """Store why a policy has no score."""
        assert self.contract.evaluation is not None
        document: dict[str, Any] = {
            "schema": 1, "level": self.contract.evaluation.level, "failure": {"code": code, "says": says},
            "figures": {}, "episodes": [],
            "enforced": run_self_test(may_go_unenforced=self._may_go_unenforced).document(),
        }  # fmt: skip
        file.parent.mkdir(parents=True, exist_ok=True)
        files.write_json(file, document)
        return Result(seed, file, document)

    @property
    def _may_go_unenforced(self) -> bool:
        return self.contract.automation is not None and self.contract.automation.sandbox == "if available"

    def _reported(
        self, candidate: str, run: str, expected: Mapping[int, str], draw: Draw, out: Path
    ) -> Iterator[Result]:
        """Take the last value that training logged. The candidate reports it itself, so it never moves an incumbent."""
        assert self.contract.metric is not None
        view, name = Run(self.study.root / "runs" / run), self.contract.metric.name
        for seed in expected:
            value = view.seed(seed).last(name)
            known = ", ".join(view.metric_names()) or "nothing"
            says = f"{run}: seed {seed} logged no `{name}`; it logged {known}"
            if value is None and _is_yardstick(candidate, out):
                raise EvidenceInvalid(says, hint=f"rlx explain-metrics {run}")
            found = {"failure": {"code": "policy", "says": says}} if value is None else {}
            figures = {} if value is None else {name: value}
            document = {"schema": 1, "level": "reported", "figures": figures, "episodes": [], "enforced": {}, **found}
            file = out / f"{candidate}_{seed}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            files.write_json(file, document)
            yield Result(seed, file, document)


def _is_yardstick(candidate: str, out: Path) -> bool:
    return candidate in UNCHANGED or out.name == "promotion"


def _took_too_much(one: EvaluationResult) -> bool:
    """Whether a limit ended a measurement, for an unknown cause."""
    return one.failure is not None and not one.failure.is_policy_fault and one.failure.code in LIMITED


def _place(seed: Seed) -> Path:
    """Return the path of a seed's final policy; an altered one gets another hash there."""
    try:
        return final_checkpoint(seed)
    except CheckpointInvalid:
        return seed.checkpoints


def _remove(path: Path) -> None:
    """Remove a file or a folder, also one of read-only files."""
    if path.is_dir():
        for here in (path, *path.rglob("*/")):
            here.chmod(0o700)
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def figures_again(document: Mapping[str, Any]) -> dict[str, Any]:
    """Compute an evaluation's figures from its raw episodes, if rlx played them."""
    is_raw = document["level"] in ("sealed", "reported") and document.get("episodes")
    return dict(summarize_rows(document["episodes"])) if is_raw else dict(document["figures"])
