"""Check a candidate as it is on disk: what would run, the hash that names it, and its problems."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx import files
from rlx.command import rlx
from rlx.config.load import document
from rlx.config.schema import Experiment
from rlx.errors import Refused, RlxError
from rlx.evaluate.stored_code import code_references, refuse_foreign_program
from rlx.launch.git import worktree
from rlx.launch.study_jobs.check_in_sandbox import check_in_sandbox
from rlx.study.candidate import candidate as candidates
from rlx.study.candidate import candidate_experiment, diff_scope
from rlx.study.candidate.candidate import NO_CODE_CHANGE, Candidate, CodeChange
from rlx.study.candidate.diff_scope import FileChange
from rlx.study.candidate.large_literals import large_literals
from rlx.study.candidate.seed_only import is_seed_only
from rlx.study.contract import contract as contracts
from rlx.study.contract.contract import Contract
from rlx.study.refusal import Refusal
from rlx.study.study_folder import UNCHANGED, Study
from rlx.study.task import infer_task
from rlx.study.task.task import Task

LONGER = 1.1  # a candidate may train this many times the baseline's steps, because its rollouts are longer


@dataclass(frozen=True)
class CheckedCandidate:
    """A candidate as it is on disk now: what would run, its hash, and its problems."""

    candidate: Candidate
    plan: str
    content: str
    changes: tuple[FileChange, ...]
    keys: Mapping[str, Any]
    experiment: Experiment | None
    problems: tuple[Refusal, ...]
    breaches: tuple[str, ...]
    tree: Path

    @property
    def lines(self) -> int:
        """How many lines of code differ from the baseline's."""
        return changed_lines(worktree.patch_text(self.changes))

    @property
    def large_literals(self) -> list[str]:
        """The data in its code: long texts, tables of numbers, binary files."""
        return large_literals(worktree.patch_text(self.changes))


def check_on_disk(study: Study, identity: str) -> CheckedCandidate:
    """Read a candidate, its worktree and its config as they are now, and check them; writes nothing."""
    contract = study.contract()
    task = study.task()
    chain = study.chain(identity)
    tree = ensure_worktree(study, contract, identity)
    assert contract.baseline is not None  # otherwise there is no worktree
    changes = worktree.diff(tree, contract.baseline.commit, root=study.root)
    keys = candidate_experiment.changes_of(chain)
    if task.adapter.kind == "rlx":
        refuse_foreign_program(f"the environment of the task {task.name}", root=study.root, item=study.folder)
    experiment, error = _experiment(contract, task, keys, tree)
    problems: list[Refusal] = []
    if identity not in UNCHANGED:
        problems += _problems(study, contract, task, chain[-1], changes)
    if error:
        problems.append(_problem(error))
    if experiment is not None and identity not in UNCHANGED and task.adapter.kind == "rlx":
        messages = _config_problems(contract, task, tree, experiment)
        problems += [Refusal("VALUE", message, rlx("next")) for message in messages]
    content = _content(chain, changes)
    return CheckedCandidate(
        candidate=chain[-1],
        plan=plan_hash(study, content),
        content=content,
        changes=changes,
        keys=keys,
        experiment=experiment,
        problems=tuple(problems),
        breaches=diff_scope.breaches(changes, keys, contract, task),
        tree=tree,
    )


def _content(chain: Sequence[Candidate], changes: Sequence[FileChange]) -> str:
    """Return the hash of everything that a candidate changes."""
    documents = [candidate.model_dump(mode="json", by_alias=True) for candidate in chain]
    for document_of_link in documents:
        if not document_of_link["carries"]:  # so that older studies keep their hashes
            del document_of_link["carries"]
    return _hash({"chain": documents, "diff": worktree.diff_sha256(changes)})


def content_hash(study: Study, identity: str) -> str | None:
    """Return the hash of everything that a candidate changes on disk; None if it has no worktree yet."""
    baseline = study.contract().baseline
    tree = study.worktree(identity)
    if baseline is None or not tree.is_dir():
        return None
    return _content(study.chain(identity), worktree.diff(tree, baseline.commit, root=study.root))


def changes_code(study: Study, identity: str) -> bool:
    """Say whether a candidate changes code, as it was checked or else proposed: then it can be fixed."""
    candidate = study.candidate(identity)
    if not study.patch_path(identity).exists():
        return candidate.is_code
    return study.patch(identity) != study.patch(candidate.builds_on)


def plan_hash(study: Study, content: str) -> str:
    """Return the hash of what would run: a candidate's content, with the contract and the task as they are now."""
    task = files.sha256(files.read_bytes(study.task_path))
    plan = {"contract": contracts.sha256(study.contract_path), "task": task, "content": content}
    return _hash(plan)[:16]


def _problems(
    study: Study, contract: Contract, task: Task, candidate: Candidate, changes: Sequence[FileChange]
) -> tuple[Refusal, ...]:
    """Return all problems of a candidate and its code change."""
    if len(changes) > diff_scope.MOST_CHANGES:
        return (_problem(f"{len(changes):,} files differ from the baseline's: remove those that do not belong to it"),)
    unpatchable = worktree.unpatchable(changes)
    if unpatchable:
        return tuple(map(_problem, unpatchable))
    patch = worktree.patch_text(changes)
    below = _patch(study, candidate.builds_on)
    own = _own_changes(changes, below)
    own_patch = worktree.patch_text(own)
    code = code_by_candidate(study, candidate)
    code[candidate.id] = CodeChange(
        sha256=files.sha256(patch) if patch else "",
        lines=changed_lines(own_patch),
        size_bytes=len(own_patch),
        paths=tuple(change.path for change in own),
        is_seed_only=is_seed_only(patch, below=below),
    )
    base = infer_task.baseline_values(task, study.root)
    return candidates.problems(candidate, contract, task, not_withdrawn(study), base=base, code=code)


def _problem(message: str) -> Refusal:
    return Refusal("CANDIDATE", message)


def not_withdrawn(study: Study) -> list[Candidate]:
    """Return the candidates that a new one is compared with: a withdrawn one may be proposed again."""
    known = study.state().candidates
    withdrawn = {name for name, standing in known.items() if standing.state == "withdrawn"}
    return [candidate for candidate in study.candidates() if candidate.id not in withdrawn]


def _own_changes(changes: Sequence[FileChange], below: bytes) -> list[FileChange]:
    """Return the changes that are not in the patch `below`; all changes if one of that patch was undone."""
    if not below:
        return list(changes)
    patches = {change.path: worktree.patch_text([change]) for change in changes}
    inherited = {path for path, patch in patches.items() if patch in below}
    if sum(len(patches[path]) for path in inherited) < len(below):
        inherited = set()
    return [change for change in changes if change.path not in inherited]


def code_by_candidate(study: Study, candidate: Candidate) -> dict[str, CodeChange]:
    """Return the code change of every candidate; a new candidate of config keys has the code that it builds on."""
    code = {other.id: _code(study, other.id) for other in study.candidates()}
    if candidate.kind == "hyperparameter":
        code[candidate.id] = _code(study, candidate.builds_on)
    return code


def _code(study: Study, identity: str) -> CodeChange:
    patch = _patch(study, identity)
    return CodeChange(files.sha256(patch)) if patch else NO_CODE_CHANGE


def _patch(study: Study, identity: str) -> bytes:
    return b"" if identity in UNCHANGED else study.patch(identity) or b""


def changed_lines(patch: bytes) -> int:
    """Return how many lines a patch adds and removes."""
    lines = [line for line in patch.splitlines() if line[:1] in (b"+", b"-")]
    return sum(not line.startswith((b"+++ ", b"--- ")) for line in lines)


def _experiment(contract: Contract, task: Task, keys: Mapping[str, Any], tree: Path) -> tuple[Experiment | None, str]:
    """Return the experiment of a worktree with these keys and its backend, or why it cannot train."""
    may_go_unenforced = contract.automation is not None and contract.automation.sandbox == "if available"
    reads = [Path(path) for path in contract.hardware.reads] if contract.hardware else []
    try:
        experiment = candidate_experiment.experiment_of(task, keys, tree=tree)
        result = check_in_sandbox(experiment, tree=tree, reads=reads, may_go_unenforced=may_go_unenforced)
    except RlxError as error:
        return None, error.message
    return result.experiment, result.problem


def _config_problems(contract: Contract, task: Task, tree: Path, experiment: Experiment) -> Iterator[str]:
    """Yield the problems of a config compared with the baseline's: a longer training, other code."""
    baseline = candidate_experiment.experiment_of(task, {}, tree=tree)
    share = contract.budget.trial_steps if contract.budget else 1.0
    steps = candidate_experiment.steps_of(experiment, share)
    baseline_steps = candidate_experiment.steps_of(baseline, share)
    if steps > LONGER * baseline_steps:
        yield f"it would train {steps:,} steps, the baseline {baseline_steps:,}: its rollouts are too long"
    if task.adapter.policy is None:  # a sealed evaluation would refuse its policies, after the training
        before, after = document(baseline), document(experiment)
        for section in after:  # each on its own: the baseline's environment is no policy
            known = code_references({section: before.get(section)})
            for name in code_references({section: after[section]}):
                if name not in known:
                    yield f"it names code that the baseline does not run, so that rlx could not measure it: `{name}`"


def _hash(value: object) -> str:
    return files.sha256(json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode())


def ensure_worktree(study: Study, contract: Contract, identity: str) -> Path:
    """Make a candidate's worktree from the pinned commit and the patch that it builds on; keep an existing one."""
    if contract.baseline is None:
        raise Refused(f"{study.name} pins no baseline", hint=f"rlx study show {study.name}")
    patch = None
    if identity not in UNCHANGED:
        patch = _patch(study, study.chain(identity)[-2].id) or None
    folder = study.worktree(identity)
    worktree.add(study.root, folder, contract.baseline.commit, patch=patch)
    return folder
