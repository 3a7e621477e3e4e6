"""A candidate looked at as it is on disk: what would run, the hash that names it, and what stands against it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx import files
from rlx.config.load import document
from rlx.config.schema import Experiment
from rlx.errors import Refused, RlxError
from rlx.evaluate.policy import code_named_in
from rlx.launch import admission, worktree
from rlx.study import candidate as candidates
from rlx.study import contract as contracts
from rlx.study import derive, recipe, scope
from rlx.study.candidate import NO_CODE, Candidate, Code
from rlx.study.contract import Contract
from rlx.study.reason import Reason
from rlx.study.reseeding import is_seed_only
from rlx.study.scope import Change
from rlx.study.study import NULL, Study
from rlx.study.task import Task

LONGER = 1.1
"""So many times the baseline's steps a candidate may train because its rollouts end later."""


@dataclass(frozen=True)
class Examined:
    """A candidate as it is on disk now: what would run, its hash, and what stands against it."""

    candidate: Candidate
    plan: str
    content: str
    changes: tuple[Change, ...]
    keys: Mapping[str, Any]
    experiment: Experiment | None
    problems: tuple[str, ...]
    breaches: tuple[str, ...]
    tree: Path

    @property
    def lines(self) -> int:
        """How many lines of code differ from the baseline's."""
        return changed_lines(worktree.patch_text(self.changes))

    def reasons(self) -> tuple[Reason, ...]:
        """Return what stands against it, whatever the study's state."""
        is_unedited = not self.keys and not self.changes
        hint = f"edit the files in {self.tree}" if is_unedited else "rlx schema candidate; rlx propose --help"
        return (
            *(Reason("CANDIDATE", one, hint) for one in self.problems),
            *(
                Reason("SCOPE", one, "take it back in the worktree, or propose within the scope")
                for one in self.breaches
            ),
        )


def examine(study: Study, identity: str) -> Examined:
    """Read a candidate, its worktree and its config as they are now, and judge them; writes nothing."""
    contract, task = study.contract(), study.task()
    chain = study.chain(identity)
    commit = contract.baseline.commit if contract.baseline else ""
    tree = ensure_worktree(study, contract, identity)
    changes = worktree.diff(tree, commit, root=study.root)
    keys = recipe.changes_of(chain)
    problems = [] if identity in NULL else list(_problems(study, contract, task, chain[-1], changes))
    experiment, unreadable = _experiment(study, contract, task, keys, tree)
    problems += [unreadable] if unreadable else []
    if experiment is not None and identity not in NULL and task.adapter.kind == "rlx":
        base = recipe.experiment_of(task, {}, tree=tree)
        problems += [*_longer(contract, base, experiment), *_named(task, base, experiment)]
    content = _content(chain, changes)
    breaches = scope.breaches(changes, keys, contract, task)
    plan = plan_of(study, content)
    return Examined(chain[-1], plan, content, changes, keys, experiment, tuple(problems), tuple(breaches), tree)


def _content(chain: Sequence[Candidate], changes: Sequence[Change]) -> str:
    """Return the hash of all that a candidate changes."""
    documents = [one.model_dump(mode="json", by_alias=True) for one in chain]
    return _hash({"chain": documents, "diff": worktree.diff_sha256(changes)})


def content_now(study: Study, identity: str) -> str | None:
    """Return the hash of all that a candidate changes, as it is on disk; None where it has no worktree yet."""
    baseline, tree = study.contract().baseline, study.worktree(identity)
    if baseline is None or not tree.is_dir():
        return None
    return _content(study.chain(identity), worktree.diff(tree, baseline.commit, root=study.root))


def changes_code(study: Study, identity: str) -> bool:
    """Say whether a candidate changes code, as it was checked, else as it was proposed: that can be mended."""
    candidate = study.candidate(identity)
    if not study.patch_path(identity).exists():
        return candidate.is_code
    return study.patch(identity) != study.patch(candidate.builds_on)


def plan_of(study: Study, content: str) -> str:
    """Return the hash of what would run: a candidate's content, under the contract and the task as they are now."""
    under = {"contract": contracts.sha256(study.contract_path), "task": _file_hash(study)}
    return _hash({**under, "content": content})[:16]


def _problems(
    study: Study, contract: Contract, task: Task, candidate: Candidate, changes: Sequence[Change]
) -> tuple[str, ...]:
    """Return all that is wrong with a candidate and its change of code, beside the others of its study."""
    if bad := worktree.unpatchable(changes):
        return bad
    code = {one.id: _code(study, one.id) for one in study.candidates()}
    patch = worktree.patch_text(changes)
    below = (study.patch(candidate.builds_on) if candidate.builds_on not in NULL else None) or b""
    own = _own(changes, below)
    code[candidate.id] = Code(
        files.sha256(patch) if patch else "", changed_lines(worktree.patch_text(own)), tuple(one.path for one in own),
        is_seed_only(patch, below=below),
    )  # fmt: skip
    return candidates.problems(
        candidate, contract, task, study.candidates(), base=derive.base_of(task, study.root), code=code
    )


def _own(changes: Sequence[Change], below: bytes) -> list[Change]:
    """Return what a candidate changes beside what it builds on; everything where it takes some of that back."""
    sections = [(one, worktree.patch_text([one])) for one in changes] if below else []
    inherited = [section for _, section in sections if section in below]
    if sum(map(len, inherited)) < len(below):
        return list(changes)
    return [one for one, section in sections if section not in inherited] if below else list(changes)


def code_beside(study: Study, candidate: Candidate) -> dict[str, Code]:
    """Return the code that every candidate has changed; of a new one that changes none, what it builds on."""
    code = {one.id: _code(study, one.id) for one in study.candidates()}
    if candidate.kind == "hyperparameter":
        code[candidate.id] = _code(study, candidate.builds_on)
    return code


def _code(study: Study, identity: str) -> Code:
    patch = study.patch(identity) if identity not in NULL else None
    return Code(files.sha256(patch)) if patch else NO_CODE


def changed_lines(patch: bytes) -> int:
    """Return how many lines a patch adds and takes away."""
    lines = [line for line in patch.splitlines() if line[:1] in (b"+", b"-")]
    return sum(not line.startswith((b"+++ ", b"--- ")) for line in lines)


def _experiment(
    study: Study, contract: Contract, task: Task, keys: Mapping[str, Any], tree: Path
) -> tuple[Experiment | None, str]:
    """Return what a worktree trains with these keys, its backend named; or why it cannot."""
    may_go_unenforced = contract.automation is not None and contract.automation.sandbox == "if available"
    reads = [Path(path) for path in contract.hardware.reads] if contract.hardware else []
    try:
        asked = recipe.experiment_of(task, keys, tree=tree)
        found = admission.ask(asked, tree=tree, reads=reads, may_go_unenforced=may_go_unenforced)
    except RlxError as error:
        return None, error.message
    return found.experiment, found.problem


def _longer(contract: Contract, base: Experiment, asked: Experiment) -> Iterator[str]:
    """Say that whole rollouts make a training longer than the baseline's, though its length was not changed."""
    share = contract.budget.trial_steps if contract.budget else 1.0
    ours, theirs = recipe.steps_of(base, share), recipe.steps_of(asked, share)
    if theirs > LONGER * ours:
        yield f"it would train {theirs:,} steps, the baseline {ours:,}: rollouts count whole, and these are too long"


def _named(task: Task, base: Experiment, asked: Experiment) -> Iterator[str]:
    """Name the code that a config brings in: a sealed evaluation would refuse its policies, after they were trained."""
    known = code_named_in(document(base))
    for name in code_named_in(document(asked)) if task.adapter.policy is None else ():
        if name not in known:
            yield f"it names code to run that the baseline does not, and could not be measured: `{name}`"


def _file_hash(study: Study) -> str:
    return files.sha256(files.read_bytes(study.task_path))


def _hash(value: object) -> str:
    return files.sha256(json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode())


def ensure_worktree(study: Study, contract: Contract, identity: str) -> Path:
    """Make a candidate's worktree from the pinned commit and the patch of what it builds on; keep one that is there."""
    if contract.baseline is None:
        raise Refused(f"{study.name} pins no baseline", hint=f"rlx study show {study.name}")
    below = study.chain(identity)[-2].id if identity not in NULL else None
    patch = study.patch(below) if below and below not in NULL else None
    folder = study.worktree(identity)
    worktree.add(study.root, folder, contract.baseline.commit, patch=patch)
    return folder
