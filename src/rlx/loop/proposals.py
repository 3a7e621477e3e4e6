"""Proposals: a candidate is written down, gets its worktree where it changes code, and a row in the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlx.config.yaml_lines import Document
from rlx.errors import NotFound, Refused, UsageError
from rlx.launch import door, worktree
from rlx.launch.examined import code_beside, ensure_worktree
from rlx.loop import proceed
from rlx.loop.agenda import FIRST_SEEDS
from rlx.study import candidate as candidates
from rlx.study import contract as contracts
from rlx.study import derive, gates
from rlx.study import document as documents
from rlx.study.candidate import Candidate, Records
from rlx.study.ledger import Held
from rlx.study.reason import Reason
from rlx.study.state import replay
from rlx.study.study import Study


def read_proposal(path: Path) -> Document:
    """Read a proposal from a JSON or YAML file."""
    if not path.is_file():
        raise NotFound(f"no file {path}", hint="rlx schema candidate says what it holds")
    return documents.load(path, sort=candidates.SORT)


def propose(study: Study, proposal: Document | Mapping[str, Any], *, patch: Path | None = None) -> dict[str, Any]:
    """Write a candidate that builds on the head, and its worktree; return its id and what to do next."""
    document = proposal if isinstance(proposal, Document) else Document("proposal", dict(proposal))
    content = _content(patch) if patch is not None else None
    with study.ledger.held() as held:
        state = replay(held.events)
        identity = candidates.next_id(list(state.candidates))
        given = {key: value for key, value in document.data.items() if key not in ("id", "builds_on", "schema")}
        asked = document.data.get("builds_on", state.head)
        candidate = candidates.parse(
            Document(document.source, {**given, "id": identity, "builds_on": asked}, document.places)
        )
        _clear(study, identity)
        hint = "what may change, and what was tried: rlx next"
        reasons = [Reason("CANDIDATE", one, hint) for one in _problems(study, candidate)]
        reasons += gates.candidates_spent(state, study.contract(), identity)
        if reasons:
            door.refuse(held, "propose", identity, reasons)
        sha256 = candidates.write(candidate, study.candidate_path(identity))
        tree = _tree(study, candidate, content, held)
        held.append("proposed", candidate=identity, kind=candidate.kind, sha256=sha256)
    vain = _vain(study)
    return {
        "candidate": identity,
        "kind": candidate.kind,
        "builds_on": candidate.builds_on,
        "changes": candidate.changes,
        "worktree": str(tree) if tree else None,
        "notes": [*_notes(study, tree, patch), *vain],
        "command": f"rlx next{study.option}" if vain else f"rlx check candidate {identity}{study.option}",
    }


def _clear(study: Study, identity: str) -> None:
    """Remove what a proposal left that died before its row: nobody's."""
    study.candidate_path(identity).unlink(missing_ok=True)
    if study.worktree(identity).exists():
        worktree.remove(study.worktree(identity), root=study.root)


def _problems(study: Study, candidate: Candidate) -> tuple[str, ...]:
    """Return what is wrong with what was written; its code is looked at when it is checked."""
    task = study.task()
    base = derive.base_of(task, study.root)
    code = code_beside(study, candidate)
    found = candidates.problems(candidate, study.contract(), task, study.candidates(), base=base, code=code)
    return (*found, *_absent_files(candidate.records, study.root))


def _absent_files(records: Records, root: Path) -> Iterator[str]:
    """Yield the files that records name and that are not there; words are no file."""
    for name, text in records.model_dump(exclude_none=True).items():
        if text.endswith(".json") and " " not in text and not (root / text).is_file():
            told = f": rlx {name} prints the file that it keeps" if name == "probe" else ""
            yield f"records.{name} names `{text}`, which is not there{told}"


def _vain(study: Study) -> list[str]:
    """Say why a candidate that was written will not be raced, where that is known already."""
    at = proceed.position(study)
    if not at.searches:
        return ["no trial of it follows: the contract's claims are made"]
    if at.spare_seeds >= FIRST_SEEDS:
        return []
    kept = f"{at.seeds_left} seeds are left, {at.claim_seeds} of them kept for the claim"
    return [f"no trial of it follows: {kept}, and a trial takes {FIRST_SEEDS}"]


def _notes(study: Study, tree: Path | None, patch: Path | None) -> list[str]:
    """Return what is to be done in a worktree, and what stands against doing it."""
    if tree is None or patch is not None:
        return []
    contract = study.contract()
    has_code = contract.scope is None or bool(contracts.allowed(contract.scope, study.task()).paths)
    told = "the scope has no files: a change of code is refused by the check; config keys are named with -s KEY=VALUE"
    return ["change the code in the worktree, then check it", *([] if has_code else [told])]


def _content(patch: Path) -> bytes:
    try:
        return patch.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {patch}: {error.strerror}", hint="--patch FILE") from None


def _tree(study: Study, candidate: Candidate, patch: bytes | None, held: Held) -> Path | None:
    """Make the worktree of a candidate that changes code, with its patch.

    The row comes after it: a candidate that is in the ledger has all that was proposed.
    """
    if patch is None and not candidate.is_code:
        return None
    made = ensure_worktree(study, study.contract(), candidate.id)
    try:
        if patch is not None:
            worktree.apply(study.root, made, patch)
    except Refused as error:
        _clear(study, candidate.id)
        door.refuse(held, "propose", candidate.id, [Reason("PATCH", error.message, error.hint or "")])
    return made


def revert(study: Study, identity: str, *, why: str) -> dict[str, Any]:
    """Take a candidate back: head and incumbent fall to what they were before it."""
    hypothesis = study.candidate(identity).hypothesis
    with study.ledger.held() as held:
        state = replay(held.events)
        standing = state.candidates.get(identity)
        if standing is None or standing.state not in ("advanced", "confirmed"):
            found = standing.state if standing else "unknown"
            raise Refused(f"{identity} is {found}: only what advanced can be taken back", hint="rlx status")
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
