"""A candidate: one bounded change with a hypothesis, of one kind, with the records that kind asks for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from rlx import files
from rlx.config import load
from rlx.config.schema import Number, Section, Text
from rlx.config.yaml_lines import Document, Sort
from rlx.errors import ConfigError, RlxError
from rlx.runs.reader import listed
from rlx.study import document, evaluator, patterns
from rlx.study.changes import TOLERANCE, comparable, is_alike, is_close, is_plain, keys_of, laid
from rlx.study.contract import Contract
from rlx.study.lifecycle import BASELINE as BASELINE
from rlx.study.lifecycle import REHEARSAL as REHEARSAL
from rlx.study.scope import key_breaches
from rlx.study.task import Surface, Task

SCHEMA: Literal[1] = 1
Id = Annotated[str, Field(strict=True, pattern=r"^(c\d{3,}|baseline|rehearsal)$")]
Kind = Literal[
    "hyperparameter",
    "reward tuning",
    "reward engineering",
    "curriculum sampling",
    "curriculum schedule",
    "environment generation",
    "randomisation probe",
    "randomisation tuning",
    "code",
]


class Records(Section):
    """What a kind of change must bring along."""

    reflection: Text | None = None
    reason: Text | None = None
    probe: Text | None = None
    learnability: Text | None = None
    difficulty_bridge: Text | None = None
    diversity: Text | None = None
    held_out_invariant: Text | None = None
    rollback_rule: Text | None = None


class Candidate(Section):
    """One change as `candidates/<id>.json` holds it; a code change lives in the worktree and is kept as a patch.

    `changes` are config keys with their new values, on top of what `builds_on` has; `predicts` is the expected change
    of the primary metric.
    """

    schema_: Literal[1] = Field(SCHEMA, alias="schema")
    id: Id
    kind: Kind
    hypothesis: Text
    predicts: Number | None = None
    builds_on: Id = BASELINE
    changes: dict[str, Any] = Field(default_factory=dict)
    records: Records = Records()

    @property
    def is_code(self) -> bool:
        """Whether it is proposed as a change of code: it gets a worktree then."""
        return not self.changes or self.kind in CODE_KINDS


CODE_KINDS: frozenset[Kind] = frozenset({"reward engineering", "environment generation", "code"})
"""Kinds that change code, config keys or not; others do where they name no keys."""
SORT = Sort("candidate", "it has kind, hypothesis, changes and records: rlx propose --help")
REWARD_KINDS: tuple[Kind, ...] = ("reward tuning", "reward engineering")
GENERATION_RECORDS = ("learnability", "difficulty_bridge", "diversity", "held_out_invariant", "rollback_rule")
KINDS_OF: dict[Surface, tuple[Kind, ...]] = {
    "reward": REWARD_KINDS,
    "randomisation": ("randomisation probe", "randomisation tuning"),
}
"""Surfaces that only some kinds may touch, because those kinds bring records along."""
MOST_KEYS = 6
MOST_LINES = 400
MOST_FILES = 10
LONGEST_VALUE = 2_000
LONGEST_TEXT = 5_000


@dataclass(frozen=True)
class Code:
    """What a candidate's worktree changes since the pinned baseline: the diff's hash, its lines, its files.

    `is_seed_only`: beside what it builds on, it does no more than seed random numbers anew.
    """

    sha256: str
    lines: int = 0
    paths: tuple[str, ...] = ()
    is_seed_only: bool = False


NO_CODE = Code("")


def read(path: Path, *, id: str | None = None) -> Candidate:
    """Read a candidate; a proposal has no id yet and is given one."""
    return parse(document.load(path, sort=SORT), id=id)


def parse(proposal: Document, *, id: str | None = None) -> Candidate:
    """Build a candidate from plain data, every problem with its line; `id` is what rlx calls it."""
    if id is None:
        return document.build(proposal, Candidate)
    if proposal.data.get("id") not in (None, id):
        raise ConfigError(f"{proposal.place(('id',))}: `id` is given by rlx: leave it out", hint=f"it will be {id}")
    data = {
        key: _one_line(value) if key in ("hypothesis", "records") else value for key, value in proposal.data.items()
    }
    return document.build(Document(proposal.source, {**data, "id": id}, proposal.places), Candidate)


def _one_line(value: Any) -> Any:
    """Return a candidate's text on one line, or its records' texts."""
    if isinstance(value, dict):
        return {key: _one_line(one) for key, one in value.items()}
    return " ".join(value.split()) if isinstance(value, str) else value


def encode(candidate: Candidate) -> bytes:
    """Return the document as `candidates/<id>.json` holds it; equal candidates give equal bytes."""
    data = candidate.model_dump(mode="json", by_alias=True, exclude_none=True)
    return (json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()


def write(candidate: Candidate, path: Path) -> str:
    """Write the document, whole or not at all, and return its sha256."""
    content = encode(candidate)
    files.write_atomic(path, content)
    return files.sha256(content)


def sha256(candidate: Candidate) -> str:
    """Return the hash of the document."""
    return files.sha256(encode(candidate))


def next_id(others: Sequence[str]) -> str:
    """Return the id after the last: c001, c002 and on; none is used twice."""
    numbers = [int(id[1:]) for id in others if id.startswith("c") and id[1:].isdigit()]
    return f"c{max(numbers, default=0) + 1:03d}"


def problems(
    candidate: Candidate,
    contract: Contract,
    task: Task,
    others: Sequence[Candidate],
    *,
    base: Mapping[str, Any] | None = None,
    code: Mapping[str, Code] | None = None,
) -> tuple[str, ...]:
    """Return all that is wrong with a candidate beside the others of its study.

    `base` is the baseline's config as plain data (`derive.base_of`); without it values are compared only as they are
    written. `code` has what worktrees change, by candidate; one that is not in it has not been looked at yet.
    """
    known = {one.id: one for one in others if one.id != candidate.id}
    seen = code or {}
    found = [
        *_text_problems(candidate),
        *_record_problems(candidate),
        *_size_problems(candidate, seen.get(candidate.id, NO_CODE)),
        *_key_problems(candidate, contract, task),
        *_seed_problems(candidate, seen.get(candidate.id, NO_CODE)),
        *_kind_problems(candidate, task, seen.get(candidate.id, NO_CODE)),
    ]
    if candidate.builds_on != BASELINE and candidate.builds_on not in known:
        return (*found, f"builds_on `{candidate.builds_on}`: there is no such candidate")
    is_config = base is not None and task.adapter.kind == "rlx"
    beside = _Beside(known, base if base is not None else task.adapter.defaults, seen, is_config)
    return (*found, *_value_problems(candidate, beside), *_duplicates(candidate, beside))


def _text_problems(candidate: Candidate) -> Iterator[str]:
    if candidate.id == BASELINE:
        yield "the baseline is no candidate"
    if not candidate.hypothesis.strip():
        yield "hypothesis is empty: say what should happen and why"
    texts = {"hypothesis": candidate.hypothesis, **candidate.records.model_dump(exclude_none=True)}
    for name, text in texts.items():
        if len(text) > LONGEST_TEXT:
            yield f"{name} is longer than {LONGEST_TEXT} characters"
        if not text.replace("\n", " ").isprintable():
            yield f"{name} has control characters: {next(sign for sign in text if not sign.isprintable())!a}"


def _record_problems(candidate: Candidate) -> Iterator[str]:
    kind, records = candidate.kind, candidate.records
    has = {name for name, text in records.model_dump(exclude_none=True).items() if text.strip()}
    if kind in REWARD_KINDS and not has & {"reflection", "reason"}:
        yield f"{kind} needs {_record('reflection', 'what rlx reflect showed')}, or {_record('reason')}"
    if kind == "randomisation tuning" and not has & {"probe", "reason"}:
        yield f"randomisation tuning needs {_record('probe', 'what rlx probe showed')}, or {_record('reason')}"
    if kind == "environment generation":
        missing = [name for name in GENERATION_RECORDS if name not in has]
        if missing:
            yield f"environment generation needs {', '.join(map(_record, missing))}"


def _record(name: str, content: str = "TEXT") -> str:
    """Return a record as a document has it, and as it is typed."""
    return f'records.{name} (--record {name}="{content}")'


def _size_problems(candidate: Candidate, code: Code) -> Iterator[str]:
    keys = keys_of(candidate.changes)
    if len(keys) > MOST_KEYS:
        yield f"{len(keys)} keys change: one bounded change has at most {MOST_KEYS}"
    for key, value in keys.items():
        if not is_plain(value):
            yield f"`{key}`: not a finite number, text, true or false, or a list or mapping of these"
        elif len(json.dumps(value)) > LONGEST_VALUE:
            yield f"`{key}`: the value is longer than {LONGEST_VALUE} characters"
    if code.lines > MOST_LINES:
        yield f"the diff has {code.lines} lines: one bounded change has at most {MOST_LINES}"
    if len(code.paths) > MOST_FILES:
        yield f"the diff touches {len(code.paths)} files: one bounded change has at most {MOST_FILES}"


def _key_problems(candidate: Candidate, contract: Contract, task: Task) -> Iterator[str]:
    keys = keys_of(candidate.changes)
    seeds = [key for key in keys if patterns.is_seed_key(key)]
    if seeds and len(seeds) == len(keys):
        yield f"only the seed changes (`{seeds[0]}`): another replicate is no candidate"
    for key in keys:
        if not key.isprintable() or "=" in key or key.split() != [key]:
            yield f"{key!a} can be no key: it has blanks, control characters or `=`"
    known = evaluator.command_keys(task)
    for key, meant in evaluator.unknown_keys(keys, task, known).items():
        yield f"there is no key `{key}`; " + (f"did you mean `{meant}`?" if meant else f"there are: {listed(known)}")
    yield from key_breaches(keys, contract, task)


def _seed_problems(candidate: Candidate, code: Code) -> Iterator[str]:
    if code.is_seed_only and not candidate.changes:
        yield f"only the seed changes (`{code.paths[0]}`): another replicate is no candidate"


def _kind_problems(candidate: Candidate, task: Task, code: Code) -> Iterator[str]:
    if candidate.kind == "hyperparameter" and code.paths:
        yield f"kind hyperparameter changes no code, and the worktree changes `{code.paths[0]}`"
    for surface, kinds in KINDS_OF.items():
        if candidate.kind in kinds or surface not in task.surfaces:
            continue
        touched = _touched(candidate, code, surface, task)
        if touched:
            yield f"`{touched}` is {surface}: its kind is {' or '.join(kinds)}, not {candidate.kind}"


def _touched(candidate: Candidate, code: Code, surface: Surface, task: Task) -> str | None:
    """Return a key or file of a surface that the candidate changes, and that no other surface has as well."""
    place = task.surfaces[surface]
    others = [one for name, one in task.surfaces.items() if name != surface]
    for key in keys_of(candidate.changes):
        if any(patterns.covers_key(one, key) for one in place.keys):
            return key
    for path in code.paths:
        shared = any(patterns.covers_path(one, path) for other in others for one in other.paths)
        if not shared and any(patterns.covers_path(one, path) for one in place.paths):
            return path
    return None


@dataclass(frozen=True)
class _Beside:
    """What a candidate is compared with: the others, the baseline's config, and everyone's code."""

    others: Mapping[str, Candidate]
    base: Mapping[str, Any]
    code: Mapping[str, Code]
    is_config: bool

    def effective(self, candidate: Candidate) -> dict[str, Any]:
        return effective(candidate, self.others, self.base, is_config=self.is_config)

    def is_same(self, one: Candidate, other: Candidate | None) -> bool:
        """Say whether two candidates run the same: config within tolerance and code; None is the baseline."""
        theirs = dict(self.base) if other is None else self.effective(other)
        same_code = self._code(one.id) == self._code(other.id if other else BASELINE)
        configs = (comparable(data, is_config=self.is_config) for data in (self.effective(one), theirs))
        return same_code and is_close(*configs)

    def _code(self, id: str) -> str:
        return self.code.get(id, NO_CODE).sha256


def effective(
    candidate: Candidate, others: Mapping[str, Candidate], base: Mapping[str, Any], *, is_config: bool
) -> dict[str, Any]:
    """Return the config a candidate runs with: the baseline's, then the changes of all it builds on, then its own.

    `is_config` says that `base` is an rlx config; else it is the values of a repository's keys.
    """
    chain: list[Candidate] = [candidate]
    while chain[0].builds_on in others and chain[0].builds_on not in {one.id for one in chain}:
        chain.insert(0, others[chain[0].builds_on])
    if not is_config:
        return {**base, **{key: value for one in chain for key, value in keys_of(one.changes).items()}}
    data = dict(base)
    for one in chain:
        data = laid(data, one.changes)
    return data


def _value_problems(candidate: Candidate, beside: _Beside) -> list[str]:
    base = beside.base
    if not beside.is_config:
        return [
            f"`{key}` is {json.dumps(value)}; the baseline's is {json.dumps(base[key])}, of another type"
            for key, value in keys_of(candidate.changes).items()
            if is_plain(value) and base.get(key) is not None and not is_alike(value, base[key])
        ]
    try:
        load.parse(beside.effective(candidate), source=candidate.id)
    except RlxError as error:
        first, *more = (line.strip().removeprefix("also ") for line in error.message.splitlines())
        is_slip = error.hint is not None and error.hint.startswith("did you mean")
        return [f"{first}; {error.hint}" if is_slip else first, *more]
    return []


def _duplicates(candidate: Candidate, beside: _Beside) -> Iterator[str]:
    is_pending = candidate.id not in beside.code and candidate.kind != "hyperparameter"
    if is_pending and not candidate.changes:
        return  # its code is still to be written
    try:
        if beside.is_same(candidate, None):
            yield "it changes nothing: the same as the baseline"
            return
        same = [other.id for other in beside.others.values() if beside.is_same(candidate, other)]
    except RlxError:
        return  # told by `_value_problems`
    yield from (f"it is a duplicate of {id} (within {TOLERANCE:.0%})" for id in same)
