"""Lessons of attempts, the evidence behind them, and a check of claims that something is missing.

Evidence is `FILE#path.to.value`: a JSON file of the lab and the path of a value in it. A lesson may say that a path is
missing only if it is. That holds for `missing` paths, and for sentences that call a key of the evidence missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rlx import files
from rlx.command import rlx
from rlx.errors import UsageError
from rlx.launch.study_jobs.launch_candidate import refused_error
from rlx.loop.lab.attempt import Attempt
from rlx.loop.lab.lab_folder import Lab
from rlx.loop.lab.try_attempt import find_attempt, require_candidate
from rlx.study.refusal import Refusal
from rlx.study.study_folder import Study

MOST_TEXT = 600
ABSENCE = re.compile(
    r"\b(missing|absent|lacks?|lacking|not (?:recorded|reported|logged|stored|measured|there|present|available)"
    r"|(?:has|have|is|are|there is|there are) no|without any|never (?:recorded|reported|logged))\b",
    re.I,
)
"""Words by which a sentence claims that something is missing."""
_KEY = re.compile(r"[A-Za-z_][\w]*(?:[./][\w]+)*")


def evidence_files(study: Study, candidate: str) -> list[Path]:
    """Return the evidence files of a candidate: one evaluation per seed."""
    return sorted(study.evidence.rglob(f"{candidate}_*.json"))


def evidence_of(study: Study, attempt: Attempt) -> list[str]:
    """Return the places of an attempt's figures, as `FILE#path`."""
    metric = study.contract().metric
    name = metric.name if metric else ""
    found = []
    for path in evidence_files(study, attempt.candidate):
        found.append(f"{path.relative_to(study.root).as_posix()}#figures.{name}")
    return found


def record_lesson(
    lab: Lab, candidate: str, text: str, *, evidence: Sequence[str] = (), missing: Sequence[str] = ()
) -> Attempt:
    """Write a lesson as a row of the ledger; one that contradicts the evidence is refused, which is a row too."""
    study = lab.study
    require_candidate(lab, candidate)
    words = " ".join(text.split())
    if not words:
        raise UsageError("the lesson is empty", hint='rlx lab lesson c001 --text "the step was too small"')
    reasons = [*_wrong_pointers(study, evidence, missing), *_false_absences(study, candidate, words)]
    if len(words) > MOST_TEXT:
        reasons.append(f"the lesson has {len(words)} characters, more than {MOST_TEXT}")
    if reasons:
        refusals = [Refusal("LESSON", reason, rlx("lab", "show", candidate)) for reason in reasons]
        rows = [{"code": refusal.code, "says": refusal.message} for refusal in refusals]
        study.ledger.append("refused", action="lesson", candidate=candidate, reasons=rows)
        raise refused_error("the lesson is refused", refusals)
    note: dict[str, Any] = {"lesson": words}
    if evidence:
        note["evidence"] = list(evidence)
    study.ledger.append("noted", candidate=candidate, note=note)
    return find_attempt(lab, candidate)


def _wrong_pointers(study: Study, evidence: Sequence[str], missing: Sequence[str]) -> Iterator[str]:
    for pointer in evidence:
        if not exists(study.root, pointer):
            yield f"{pointer} does not exist"
    for pointer in missing:
        if exists(study.root, pointer):
            yield f"the lesson calls {pointer} missing, but it exists"


def exists(root: Path, pointer: str) -> bool:
    """Say whether a file of the lab has a value at a JSON path."""
    name, _, path = pointer.partition("#")
    file = (root / name).resolve()
    if not file.is_relative_to(root.resolve()):
        raise UsageError(f"`{name}` is outside the lab", hint="FILE#path.to.value, with a file of the lab")
    try:
        value = files.read_json(file)
    except (OSError, ValueError):
        return False
    for part in filter(None, path.split(".")):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return False
    return True


def _false_absences(study: Study, candidate: str, text: str) -> Iterator[str]:
    """Yield the keys that a sentence calls missing although the candidate's evidence has them."""
    claimed = {
        word
        for sentence in re.split(r"(?<=[.;!?])\s+", text)
        if ABSENCE.search(sentence)
        for word in _KEY.findall(sentence)
        if "_" in word or "." in word or "/" in word
    }
    if not claimed:
        return
    for path in evidence_files(study, candidate)[:1]:
        for key in _paths(files.read_json(path)):
            for word in claimed:
                if key == word or key.endswith(f".{word}"):
                    place = path.relative_to(study.root).as_posix()
                    yield f"the lesson calls `{word}` missing, but {place}#{key} exists"


def _paths(value: Any, above: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            path = f"{above}.{key}" if above else str(key)
            yield path
            yield from _paths(item, path)
