"""Who scores a study's policies: the pinned copy of the baseline's tree, at the level the contract asks for."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from rlx import files, sandbox
from rlx.config.load import document as plain_config
from rlx.config.schema import Experiment
from rlx.errors import CheckpointInvalid, EvidenceInvalid, NotFound, Refused
from rlx.evaluate.pin import Pin, pin
from rlx.evaluate.pinned import Command, Pinned, pinned
from rlx.evaluate.seal import Limits, Seal, Sealed, Subject, sealed
from rlx.evaluate.tally import tally
from rlx.launch import governed, worktree
from rlx.launch.weights import final_checkpoint
from rlx.runs.run import Run, Seed
from rlx.study import recipe
from rlx.study.contract import Contract
from rlx.study.standing import Draw
from rlx.study.study import NULL, Study
from rlx.study.task import Task

Measuring = Callable[[Sequence[Subject]], Sequence[Sealed]]
LIMITED = frozenset({"time", "memory", "disk", "processes"})
"""The failures of a measurement that passed a limit."""


@dataclass(frozen=True)
class Result:
    """What the evaluator found of one seed, kept in a file; a policy that failed has no score."""

    seed: int
    file: Path
    document: Mapping[str, Any]


class Evaluator:
    """The evaluator of one study; nothing that a candidate wrote is run or believed but its final checkpoint."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.contract: Contract = study.contract()
        self.task: Task = study.task()

    @cached_property
    def pin(self) -> Pin:
        """The pinned tree; it is made from the pinned commit when it is first needed, and is what was approved."""
        approved = self._approved()
        try:
            return Pin.open(self.study.evaluator, sha256=approved)
        except NotFound:
            return self._pinned(approved)

    def fresh(self) -> Pin:
        """Pin the baseline's tree anew, whatever is there: what an approval is for."""
        with files.locked(self.study.evaluator):  # others may approve, or look, at this moment
            for path in (self.study.evaluator, self.study.evaluator.with_name("evaluator.json")):
                _remove(path)
            return self._made(self.study.evaluator)

    def _approved(self) -> str | None:
        approval = self.study.state().approval
        return str(approval.event["evaluator"]) if approval and approval.event.get("evaluator") else None

    def _pinned(self, approved: str | None) -> Pin:
        with files.locked(self.study.evaluator):
            made = self._made(self.study.evaluator)
        if approved is not None and made.sha256 != approved:
            raise EvidenceInvalid("the pinned commit gives another evaluator than was approved", hint="rlx study audit")
        return made

    def _made(self, to: Path) -> Pin:
        if self.contract.baseline is None:
            raise Refused(f"{self.study.name} pins no baseline", hint=f"rlx study show {self.study.name}")
        with tempfile.TemporaryDirectory(prefix="rlx-pin-", dir=self.study.folder) as folder:
            tree = Path(folder) / "tree"
            worktree.tree_of(self.study.root, self.contract.baseline.commit, tree)
            return pin(tree, to)

    def verify(self) -> None:
        """Raise where the pinned copy is not the pinned commit's tree."""
        self.pin.verify()
        again = self.study.folder / f".verify-{os.getpid()}"
        try:
            if self._made(again).sha256 != self.pin.sha256:
                raise EvidenceInvalid("the evaluator's copy is not the pinned commit's tree", hint="rlx study audit")
        finally:
            for path in (again, again.with_name(f"{again.name}.json")):
                _remove(path)

    def measure(self, candidate: str, run: str, expected: Mapping[int, str], draw: Draw, out: Path) -> Iterator[Result]:
        """Measure the final checkpoints of a run's seeds, whose hashes the ledger has, on drawn episodes."""
        assert self.contract.evaluation is not None
        measure = {"sealed": self._sealed, "pinned": self._pinned_command, "reported": self._reported}
        yield from measure[self.contract.evaluation.level](candidate, run, expected, draw, out)

    def _sealed(self, candidate: str, run: str, expected: Mapping[int, str], draw: Draw, out: Path) -> Iterator[Result]:
        """Measure in an environment of rlx's own making; a foreign policy is served by a process of its own."""
        adapter = self.task.adapter
        seal = Seal(
            experiment=plain_config(self._agreed()), pin=self.pin, purpose=draw.purpose,  # type: ignore[arg-type]
            first=draw.first, episodes=draw.episodes, python_path=adapter.python_path, policy=adapter.policy,
            policy_root=self._tree(run) if adapter.policy else None,
            reads=self._reads, limits=self._limits, may_go_unenforced=self._may_go_unenforced,
        )  # fmt: skip
        subjects = self._subjects(candidate, run, expected, out)
        yield from self._results(subjects, partial(sealed, seal), is_yardstick=_is_yardstick(candidate, out))

    def _agreed(self) -> Experiment:
        """Return the pinned config, played as the contract says: that is what was approved."""
        assert self.contract.evaluation is not None
        experiment = recipe.experiment_of(self.task, {}, tree=self.pin.folder)
        played = experiment.eval.model_copy(update={"deterministic": self.contract.evaluation.deterministic})
        return experiment.model_copy(update={"eval": played})

    def _tree(self, run: str) -> Path:
        """Return the code that a run was trained with."""
        return governed.tree_of(Run(self.study.root / "runs" / run))

    def _pinned_command(
        self, candidate: str, run: str, expected: Mapping[int, str], draw: Draw, out: Path
    ) -> Iterator[Result]:
        """Measure with the repository's own command, from the pinned copy."""
        adapter, metric = self.task.adapter, self.contract.metric
        assert adapter.result is not None
        assert metric is not None
        command = Command(
            argv=(*adapter.prefix, *adapter.eval), metric=metric.name, names=adapter.result.names,
            python_path=adapter.python_path, policy_files=adapter.policy_files, source=adapter.result,
        )  # fmt: skip
        asked = Pinned(
            command=command, pin=self.pin, purpose=draw.purpose, first=draw.first,  # type: ignore[arg-type]
            episodes=draw.episodes, worktree=self._tree(run) if adapter.policy_files else None,
            reads=self._reads, limits=self._limits, may_go_unenforced=self._may_go_unenforced,
        )  # fmt: skip
        subjects = self._subjects(candidate, run, expected, out)
        yield from self._results(subjects, partial(pinned, asked), is_yardstick=_is_yardstick(candidate, out))

    @property
    def _reads(self) -> tuple[Path, ...]:
        return tuple(Path(path) for path in self.contract.hardware.reads) if self.contract.hardware else ()

    @property
    def _limits(self) -> Limits:
        assert self.contract.evaluation is not None
        return Limits(seconds=self.contract.evaluation.minutes * 60)

    def _subjects(self, candidate: str, run: str, expected: Mapping[int, str], out: Path) -> dict[int, Subject]:
        view = Run(self.study.root / "runs" / run)
        return {
            seed: Subject(_place(view.seed(seed)), sha256, out / f"{candidate}_{seed}.json", seed)
            for seed, sha256 in expected.items()
        }

    def _results(self, subjects: Mapping[int, Subject], measured: Measuring, *, is_yardstick: bool) -> Iterator[Result]:
        """Yield what was measured; a failure that is the candidate's own is a result, any other ends it.

        One that takes too much is measured once more, for the machine may have been busy, and is then a candidate's
        own. What others are compared with is measured for as long as it takes: another would take its place.
        """
        for seed, one in zip(subjects, measured(list(subjects.values())), strict=True):
            is_again = not is_yardstick and _took_too_much(one)
            found = measured([subjects[seed]])[0] if is_again else one
            failure = found.failure
            if found.document is not None:
                yield Result(seed, subjects[seed].out, found.document)
            elif failure is not None and (failure.is_policys or (is_again and _took_too_much(found))):
                yield self._failed(seed, subjects[seed].out, failure.code, failure.says)
            elif failure is not None and failure.code == "metric":
                raise EvidenceInvalid(f"metric: {failure.says}", hint=self._names_another)
            else:
                found.required()

    @property
    def _names_another(self) -> str:
        """What helps where the metric is no figure that was read."""
        return (
            f"name one that it has (rlx study amend {self.study.name} -s metric.name=NAME), or say how its figures are "
            f"read (rlx task refresh {self.study.task_name} -s adapter.result.names.OURS=THEIRS)"
        )

    def _failed(self, seed: int, file: Path, code: str, says: str) -> Result:
        """Keep why a policy has no score."""
        assert self.contract.evaluation is not None
        document: dict[str, Any] = {
            "schema": 1, "level": self.contract.evaluation.level, "failure": {"code": code, "says": says},
            "figures": {}, "episodes": [],
            "enforced": sandbox.probe(may_go_unenforced=self._may_go_unenforced).document(),
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
        """Take the last value that training logged: the candidate's own word, which never moves an incumbent."""
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
    return candidate in NULL or out.name == "promotion"


def _took_too_much(one: Sealed) -> bool:
    """Say whether a limit ended a measurement, and nobody knows by whose fault."""
    return one.failure is not None and not one.failure.is_policys and one.failure.code in LIMITED


def _place(seed: Seed) -> Path:
    """Return where a seed's final policy is; of one that was altered, what lies there: that has another hash."""
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
    """Work out an evaluation's figures from its raw episodes; only a sealed one has them, others have their word."""
    is_raw = document["level"] == "sealed" and document.get("episodes")
    return dict(tally(document["episodes"])) if is_raw else dict(document["figures"])
