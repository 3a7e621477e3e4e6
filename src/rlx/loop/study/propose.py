"""Propose a candidate: its document, its worktree if it changes code, and a row in the ledger; and revert one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlx.command import rlx
from rlx.compare.race_thresholds import RULE
from rlx.config.yaml_lines import Document
from rlx.errors import NotFound, Refused, UsageError
from rlx.launch.git import worktree
from rlx.launch.study_jobs import launch_candidate
from rlx.launch.study_jobs.candidate_check import code_by_candidate, ensure_worktree, not_withdrawn
from rlx.loop.study.agent import history
from rlx.loop.study.step_commands import situation_of
from rlx.study.candidate import candidate as candidates
from rlx.study.candidate.candidate import Candidate, Records
from rlx.study.contract import contract as contracts
from rlx.study.contract import document as documents
from rlx.study.ledger.ledger import Held
from rlx.study.ledger.state import State, replay
from rlx.study.moves import STATE_WORDS, Move, refusals
from rlx.study.refusal import Refusal
from rlx.study.situation import Facts
from rlx.study.study_folder import Study
from rlx.study.task import infer_task


def read_proposal(path: Path) -> Document:
    """Read a proposal from a JSON or YAML file."""
    if not path.is_file():
        raise NotFound(f"no file {path}", hint="rlx schema candidate describes it")
    return documents.load(path, kind=candidates.FILE_KIND)


def propose(
    study: Study,
    proposal: Document | Mapping[str, Any],
    *,
    patch: Path | None = None,
    carries: Sequence[str] = (),
    details: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write a candidate that builds on the head, and its worktree; return its id and what to do next.

    `carries` names the accepted candidates of another study that this one repeats as a whole. `details` are further
    fields of the row that a refusal writes.
    """
    document = proposal if isinstance(proposal, Document) else Document("proposal", dict(proposal))
    content = _content(patch) if patch is not None else None
    with study.ledger.held() as held:
        state = replay(held.events)
        identity = candidates.next_id(list(state.candidates))
        data = {"builds_on": state.head, **document.data, "id": identity, "carries": list(carries)}
        data.pop("schema", None)
        candidate = candidates.parse(Document(document.source, data, document.places))
        _clear(study, identity)
        refused = [*_problems(study, candidate)]
        refused += refusals(state, study.contract(), Facts(time.time(), ""), Move("propose", identity))
        if refused:
            launch_candidate.refuse(held, "propose", identity, refused, details=details)
        sha256 = candidates.write(candidate, study.candidate_path(identity))
        tree = _tree(study, candidate, content, held, details)
        held.append("proposed", candidate=identity, kind=candidate.kind, sha256=sha256)
    vain = _vain(study)
    return {
        "candidate": identity,
        "kind": candidate.kind,
        "builds_on": candidate.builds_on,
        "changes": candidate.changes,
        "worktree": str(tree) if tree else None,
        "notes": [*_notes(study, tree, patch), *_repeats(study, candidate, state), *vain],
        "command": f"rlx next{study.option}" if vain else f"rlx check candidate {identity}{study.option}",
    }


def _clear(study: Study, identity: str) -> None:
    """Remove what an interrupted proposal left before its row was written."""
    study.candidate_path(identity).unlink(missing_ok=True)
    if study.worktree(identity).exists():
        worktree.remove(study.worktree(identity), root=study.root)


def _problems(study: Study, candidate: Candidate) -> tuple[Refusal, ...]:
    """Return the problems of a proposal; its code is examined when it is checked."""
    task = study.task()
    base = infer_task.baseline_values(task, study.root)
    code = code_by_candidate(study, candidate)
    found = candidates.problems(candidate, study.contract(), task, not_withdrawn(study), base=base, code=code)
    absent = _absent_files(candidate.records, study.root)
    return (*found, *(Refusal("RECORD_MISSING", message, rlx("ls")) for message in absent))


def _absent_files(records: Records, root: Path) -> Iterator[str]:
    """Yield the files that records name and that do not exist."""
    for name, text in records.model_dump(exclude_none=True).items():
        if text.endswith(".json") and " " not in text and not (root / text).is_file():
            hint = ": rlx probe prints the file that it writes" if name == "probe" else ""
            yield f"records.{name} names `{text}`, which does not exist{hint}"


def _vain(study: Study) -> list[str]:
    """Return why a proposed candidate will not be raced, if that is known already."""
    at = situation_of(study)
    if not at.can_search:
        return ["no trial of it follows: the contract's claims are made"]
    if at.spare_seeds >= RULE.first:
        return []
    kept = f"{at.seeds_left} seeds are left, {at.claim_seeds} of them kept for the claim"
    return [f"no trial of it follows: {kept}, and a trial takes {RULE.first}"]


def _repeats(study: Study, candidate: Candidate, state: State) -> list[str]:
    """Return what became of the same change elsewhere: on another head, or in an earlier study of the task."""
    found = history.repeats(candidate.changes, history.lessons(study, state))
    return [history.repeat_note(lesson) for lesson in found[-2:]]


def _notes(study: Study, tree: Path | None, patch: Path | None) -> list[str]:
    """Return what to do in a worktree, and whether the scope allows it."""
    if tree is None or patch is not None:
        return []
    contract = study.contract()
    notes = ["change the code in the worktree, then check it"]
    if contract.scope and not contracts.open_places(contract.scope, study.task()).paths:
        notes.append("the scope has no files: the check refuses a change of code; name config keys with -s KEY=VALUE")
    return notes


def _content(patch: Path) -> bytes:
    try:
        return patch.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {patch}: {error.strerror}", hint="--patch FILE") from None


def _tree(
    study: Study, candidate: Candidate, patch: bytes | None, held: Held, details: Mapping[str, Any] | None
) -> Path | None:
    """Make the worktree of a candidate that changes code, with its patch.

    The row is written after it, so that a candidate in the ledger is complete.
    """
    if patch is None and not candidate.is_code:
        return None
    made = ensure_worktree(study, study.contract(), candidate.id)
    try:
        if patch is not None:
            worktree.apply(study.root, made, patch)
    except Refused as error:
        _clear(study, candidate.id)
        refused = [Refusal("PATCH", _with_hint(error), rlx("propose", "--help"))]
        launch_candidate.refuse(held, "propose", candidate.id, refused, details=details)
    return made


def _with_hint(error: Refused) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message


def withdraw(study: Study, identity: str, *, why: str) -> dict[str, Any]:
    """Withdraw a candidate that was not tried: nothing recommends it any more, and its change may come again."""
    study.candidate(identity)  # raises an error that names the known ones
    with study.ledger.held() as held:
        state = replay(held.events)
        standing = state.candidates[identity]
        if standing.state not in ("draft", "validated") or state.jobs_of(identity, "trial"):
            message = f"{identity} {STATE_WORDS[standing.state]}: only a candidate without a trial can be withdrawn"
            raise launch_candidate.refused_error(
                f"{identity} is not withdrawn", [Refusal("WITHDRAW", message, rlx("status"))]
            )
        held.append("moved", candidate=identity, before=standing.state, after="withdrawn", why=why)
    return {"candidate": identity, "was": standing.state, "why": why, "command": f"rlx next{study.option}"}


def revert(study: Study, identity: str, *, why: str) -> dict[str, Any]:
    """Revert a candidate: head and incumbent become the earlier ones again."""
    hypothesis = study.candidate(identity).hypothesis
    with study.ledger.held() as held:
        state = replay(held.events)
        standing = state.candidates.get(identity)
        if standing is None or standing.state not in ("advanced", "confirmed"):
            state_name = standing.state if standing else "unknown"
            raise Refused(f"{identity} is {state_name}: only an advanced candidate can be reverted", hint="rlx status")
        held.append("moved", candidate=identity, before=standing.state, after="reverted", why=why)
        after = replay(held.events)
    last = standing.decisions[-1] if standing.decisions else None
    return {
        "candidate": identity,
        "was": standing.state,
        "hypothesis": hypothesis,
        "says": str(last.get("says", "")) if last else "",
        "head": after.head,
        "head_before": state.head,
        "incumbent": after.incumbent,
        "incumbent_before": state.incumbent,
        "why": why,
    }
