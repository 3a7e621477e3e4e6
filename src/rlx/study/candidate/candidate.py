"""A candidate: one bounded change of one kind, with a hypothesis and the records that this kind needs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from rlx import files
from rlx.command import Command, rlx
from rlx.config import load
from rlx.config.schema import Number, Section, Text
from rlx.config.yaml_lines import Document, FileKind
from rlx.errors import ConfigError, RlxError, UsageError, hint_for
from rlx.number_format import listed
from rlx.study.candidate import path_patterns
from rlx.study.candidate.config_changes import (
    TOLERANCE,
    apply_changes,
    comparable,
    flat_keys,
    is_alike,
    is_close,
    is_plain,
)
from rlx.study.candidate.diff_scope import key_breaches
from rlx.study.contract import document
from rlx.study.contract.contract import Contract
from rlx.study.ledger.lifecycle import BASELINE as BASELINE
from rlx.study.ledger.lifecycle import REHEARSAL as REHEARSAL
from rlx.study.refusal import Refusal
from rlx.study.task import protected_files
from rlx.study.task.task import Surface, Task

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
    """The notes that some kinds of change require."""

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

    `changes` are config keys with their new values, on top of the candidate that it `builds_on`. `predicts` is the
    expected change of the primary metric.
    """

    schema_: Literal[1] = Field(SCHEMA, alias="schema")
    id: Id
    kind: Kind
    hypothesis: Text
    predicts: Number | None = None
    builds_on: Id = BASELINE
    changes: dict[str, Any] = Field(default_factory=dict)
    records: Records = Records()
    # The accepted candidates of another study that it repeats as a whole. Only rlx sets it.
    carries: tuple[Text, ...] = ()

    @property
    def is_code(self) -> bool:
        """Whether it is proposed as a code change: then it gets a worktree."""
        return not self.changes or self.kind in CODE_KINDS


# Kinds that change code, with or without config keys. Other kinds change code if they name no keys.
CODE_KINDS: frozenset[Kind] = frozenset({"reward engineering", "environment generation", "code"})
FILE_KIND = FileKind("candidate", "it has kind, hypothesis, changes and records: rlx propose --help")
REWARD_KINDS: tuple[Kind, ...] = ("reward tuning", "reward engineering")
GENERATION_RECORDS = ("learnability", "difficulty_bridge", "diversity", "held_out_invariant", "rollback_rule")
# Surfaces that only some kinds may touch, because these kinds need records.
KINDS_OF: dict[Surface, tuple[Kind, ...]] = {
    "reward": REWARD_KINDS,
    "randomisation": ("randomisation probe", "randomisation tuning"),
}
MOST_KEYS = 6
MOST_LINES = 400
MOST_FILES = 10
MOST_BYTES = 200_000
LONGEST_VALUE = 2_000
LONGEST_TEXT = 5_000
Problems = Iterator[Refusal]
SEED_ONLY = "only the seed changes (`{}`): another replicate is not a candidate"


@dataclass(frozen=True)
class CodeChange:
    """The changes of a candidate's worktree since the pinned baseline: the diff's hash, its lines, its files.

    `is_seed_only`: compared with the candidate that it builds on, it only reseeds random numbers.
    """

    sha256: str
    lines: int = 0
    paths: tuple[str, ...] = ()
    is_seed_only: bool = False
    size_bytes: int = 0


NO_CODE_CHANGE = CodeChange("")


def read(path: Path, *, id: str | None = None) -> Candidate:
    """Read a candidate; a proposal has no id yet and gets this one."""
    return parse(document.load(path, kind=FILE_KIND), id=id)


def parse(proposal: Document, *, id: str | None = None) -> Candidate:
    """Build a candidate from plain data, every problem with its line; `id` is the id that rlx gives it."""
    if id is None:
        return document.build(proposal, Candidate)
    if proposal.data.get("id") not in (None, id):
        raise ConfigError(f"{proposal.place(('id',))}: rlx sets `id`: leave it out", hint=f"it will be {id}")
    data = {**proposal.data, "id": id}
    for key in ("hypothesis", "records"):
        if key in data:
            data[key] = _on_one_line(data[key])
    return document.build(Document(proposal.source, data, proposal.places), Candidate)


def _on_one_line(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _on_one_line(text) for key, text in value.items()}
    return " ".join(value.split()) if isinstance(value, str) else value


def encode(candidate: Candidate) -> bytes:
    """Return the document as `candidates/<id>.json` holds it; equal candidates give equal bytes."""
    data = candidate.model_dump(mode="json", by_alias=True, exclude_none=True)
    if not candidate.carries:
        del data["carries"]
    return (json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()


def write(candidate: Candidate, path: Path) -> str:
    """Write the document, completely or not at all, and return its sha256."""
    files.write_atomic(path, encode(candidate))
    return sha256(candidate)


def sha256(candidate: Candidate) -> str:
    """Return the hash of the document."""
    return files.sha256(encode(candidate))


def next_id(others: Sequence[str]) -> str:
    """Return the next id: c001, c002 and so on; no id is used twice."""
    numbers = [int(id[1:]) for id in others if id.startswith("c") and id[1:].isdigit()]
    return f"c{max(numbers, default=0) + 1:03d}"


def problems(
    candidate: Candidate,
    contract: Contract,
    task: Task,
    others: Sequence[Candidate],
    *,
    base: Mapping[str, Any] | None = None,
    code: Mapping[str, CodeChange] | None = None,
) -> tuple[Refusal, ...]:
    """Return all problems of a candidate of a study with these other candidates, each with its code and fix.

    `base` is the baseline's config as plain data (`infer_task.baseline_values`); without it, values are compared only
    as they are written. `code` has the changes of worktrees by candidate. It does not have unchecked candidates.
    """
    known = {other.id: other for other in others if other.id != candidate.id}
    all_code = code or {}
    own_code = all_code.get(candidate.id, NO_CODE_CHANGE)
    found = [
        *_text_problems(candidate),
        *_record_problems(candidate),
        *_size_problems(candidate, own_code),
    ]
    reseeded = _reseeded(candidate, own_code)
    if reseeded:  # whatever else is wrong with it, no fix makes it a candidate
        return (*found, Refusal("SEED_ONLY", SEED_ONLY.format(reseeded), SHOW_SCOPE))
    found += [*_key_problems(candidate, contract, task), *_code_problems(candidate, task, own_code)]
    if candidate.builds_on != BASELINE and candidate.builds_on not in known:
        unknown = f"builds_on `{candidate.builds_on}`: there is no such candidate"
        return (*found, Refusal("CANDIDATE", unknown, rlx("status")))
    is_config = base is not None and task.adapter.kind == "rlx"
    if base is None:
        base = task.adapter.defaults
    study = _Alternatives(known, base, all_code, is_config)
    return (*found, *_value_problems(candidate, study), *_duplicates(candidate, study))


HELP = rlx("propose", "--help")


def _text_problems(candidate: Candidate) -> Problems:
    if candidate.id == BASELINE:
        yield Refusal("CANDIDATE", "the baseline is not a candidate", HELP)
    if not candidate.hypothesis.strip():
        yield Refusal("CANDIDATE", "hypothesis is empty: say what should happen and why", HELP)
    texts = {"hypothesis": candidate.hypothesis, **candidate.records.model_dump(exclude_none=True)}
    for name, text in texts.items():
        if len(text) > LONGEST_TEXT:
            yield Refusal("CANDIDATE", f"{name} is longer than {LONGEST_TEXT} characters", HELP)
        if not text.replace("\n", " ").isprintable():
            sign = next(sign for sign in text if not sign.isprintable())
            yield Refusal("CANDIDATE", f"{name} has control characters: {sign!a}", HELP)


def schema_command(kind: str) -> Command:
    """Return the command that prints what a kind of change needs."""
    return rlx("schema", "candidate", "--kind", kind)


def _record_problems(candidate: Candidate) -> Problems:
    for message in _missing_records(candidate):
        yield Refusal("RECORD_MISSING", message, schema_command(candidate.kind))


def _missing_records(candidate: Candidate) -> Iterator[str]:
    names, is_one_enough = needed_records(candidate.kind)
    present = {name for name, text in candidate.records.model_dump(exclude_none=True).items() if text.strip()}
    missing = [name for name in names if name not in present]
    if is_one_enough and len(missing) == len(names):
        tool = names[0].replace("reflection", "reflect")
        yield f"{candidate.kind} needs {_record(names[0], f'what rlx {tool} showed')}, or {_record(names[1])}"
    elif missing and not is_one_enough:
        yield f"{candidate.kind} needs {', '.join(map(_record, missing))}"


def _record(name: str, content: str = "TEXT") -> str:
    """Return the key of a record, and the option that sets it."""
    return f'records.{name} (--record {name}="{content}")'


RECORD_WORDS = {
    "reflection": "what `rlx reflect` showed about the reward terms",
    "reason": "why the change is worth it without such a record",
    "probe": "what `rlx probe` showed, or the file that it wrote",
    "learnability": "why the generated environment can be learned",
    "difficulty_bridge": "how its difficulty leads to the task's",
    "diversity": "how its episodes differ",
    "held_out_invariant": "what stays the same in the evaluation",
    "rollback_rule": "when the change is taken back",
}
"""What each record says."""


def needed_records(kind: Kind) -> tuple[tuple[str, ...], bool]:
    """Return the records of a kind of change, and whether one of them is enough."""
    if kind in REWARD_KINDS:
        return ("reflection", "reason"), True
    if kind == "randomisation tuning":
        return ("probe", "reason"), True
    if kind == "environment generation":
        return GENERATION_RECORDS, False
    return (), False


def records_by_kind() -> list[dict[str, Any]]:
    """Return what each kind requires, as conditions of a JSON Schema."""
    conditions = []
    for kind in get_args(Kind):
        names, is_one_enough = needed_records(kind)
        if not names:
            continue
        required: dict[str, Any] = {"required": list(names)}
        if is_one_enough:
            required = {"anyOf": [{"required": [name]} for name in names]}
        then = {"required": ["records"], "properties": {"records": required}}
        conditions.append({"if": {"properties": {"kind": {"const": kind}}}, "then": then})
    return conditions


def kind_document(kind: str) -> dict[str, Any]:
    """Return what a candidate of one kind needs: its records and an example."""
    if kind not in get_args(Kind):
        hint = hint_for(kind, get_args(Kind), otherwise=f"kinds: {', '.join(get_args(Kind))}")
        raise UsageError(f"there is no kind `{kind}`", hint=hint)
    names, is_one_enough = needed_records(kind)  # type: ignore[arg-type]
    changes: dict[str, Any] = {"algo.learning_rate": 0.001}
    if kind in CODE_KINDS:
        changes = {}
    elif kind != "hyperparameter":
        changes = {"env.wrappers.0.kwargs.alive": 0.0}
    example: dict[str, Any] = {"kind": kind, "hypothesis": "what was seen, why, and what should change"}
    example |= {
        "changes": changes,
        "records": {name: RECORD_WORDS[name] for name in names[: 1 if is_one_enough else 9]},
    }
    rule = "all of them"
    if is_one_enough:
        rule = "one of them"
    code = "no `changes`: rlx makes a worktree, and the code is edited there"
    return {
        "kind": kind,
        "records": {name: f"{RECORD_WORDS[name]} ({rule})" for name in names},
        "code": code if kind in CODE_KINDS else "",
        "example": example,
        "kinds": list(get_args(Kind)),
    }


def _size_problems(candidate: Candidate, code: CodeChange) -> Problems:
    yield from (Refusal("SIZE", message, HELP) for message in _oversizes(candidate, code))


def _oversizes(candidate: Candidate, code: CodeChange) -> Iterator[str]:
    keys = flat_keys(candidate.changes)
    parts = max(1, len(candidate.carries))  # each of the carried candidates was one bounded change
    if len(keys) > parts * MOST_KEYS:
        yield f"{len(keys)} keys change: one bounded change has at most {MOST_KEYS}"
    for key, value in keys.items():
        if _has_large_integer(value):
            yield f"`{key}`: an integer beyond 64 bits"
        elif not is_plain(value):
            yield f"`{key}`: not a finite number, text, true or false, or a list or mapping of these"
        elif len(json.dumps(value)) > LONGEST_VALUE:
            yield f"`{key}`: the value is longer than {LONGEST_VALUE} characters"
    if code.lines > parts * MOST_LINES:
        yield f"the diff has {code.lines} lines: one bounded change has at most {MOST_LINES}"
    if code.size_bytes > parts * MOST_BYTES:
        yield f"the diff has {code.size_bytes:,} bytes: one bounded change has at most {MOST_BYTES:,}"
    if len(code.paths) > MOST_FILES:
        yield f"the diff touches {len(code.paths)} files: one bounded change has at most {MOST_FILES}"


SHOW_SCOPE = rlx("next", "--full")
"""The command that lists what may change."""
SHOW_KEYS = rlx("schema", "config")
"""The command that lists the keys of a config and their values."""


def _has_large_integer(value: Any) -> bool:
    """Say whether a value holds an integer that no JSON file of rlx and no NumPy array could hold."""
    if isinstance(value, dict):
        return any(map(_has_large_integer, value.values()))
    if isinstance(value, list):
        return any(map(_has_large_integer, value))
    return isinstance(value, int) and not -(2**63) <= value < 2**63


def _reseeded(candidate: Candidate, code: CodeChange) -> str:
    """Return the key or file whose seed is all that a candidate changes; empty if it changes more."""
    keys = flat_keys(candidate.changes)
    if code.is_seed_only and not keys:
        return code.paths[0]
    if keys and all(map(path_patterns.is_seed_key, keys)):
        return next(iter(keys))
    return ""


def _key_problems(candidate: Candidate, contract: Contract, task: Task) -> Problems:
    keys = flat_keys(candidate.changes)
    for key in keys:
        if not key.isprintable() or "=" in key or key.split() != [key]:
            message = f"{key!a} cannot be a key: it has blanks, control characters or `=`"
            yield Refusal("KEY", message, SHOW_SCOPE)
    known = protected_files.command_keys(task)
    for key, near in protected_files.unknown_keys(keys, task, known).items():
        hint = f"did you mean `{near}`?" if near else f"there are: {listed(known)}"
        yield Refusal("KEY", f"there is no key `{key}`; {hint}", SHOW_SCOPE)
    yield from (Refusal("SCOPE", breach, SHOW_SCOPE) for breach in key_breaches(keys, contract, task))


def _code_problems(candidate: Candidate, task: Task, code: CodeChange) -> Problems:
    if candidate.kind == "hyperparameter" and code.paths:
        message = f"kind hyperparameter changes no code, but the worktree changes `{code.paths[0]}`"
        yield Refusal("KIND", message, schema_command("code"))
    for surface, kinds in KINDS_OF.items():
        if candidate.kind not in kinds and surface in task.surfaces:
            touched = _touched(candidate, code, surface, task)
            if touched:
                message = f"`{touched}` is {surface}: its kind is {' or '.join(kinds)}, not {candidate.kind}"
                yield Refusal("KIND", message, schema_command(kinds[0]))


def _touched(candidate: Candidate, code: CodeChange, surface: Surface, task: Task) -> str | None:
    """Return a key or file of a surface that the candidate changes; a file that other surfaces share does not count."""
    places = task.surfaces[surface]
    for key in flat_keys(candidate.changes):
        if path_patterns.any_covers_key(places.keys, key):
            return key
    shared = [path for name, other in task.surfaces.items() if name != surface for path in other.paths]
    for path in code.paths:
        if path_patterns.any_covers_path(places.paths, path) and not path_patterns.any_covers_path(shared, path):
            return path
    return None


@dataclass(frozen=True)
class _Alternatives:
    """What a candidate is compared with: the other candidates, the baseline's config, and all code changes."""

    others: Mapping[str, Candidate]
    base: Mapping[str, Any]
    code: Mapping[str, CodeChange]
    is_config: bool

    def effective(self, candidate: Candidate) -> dict[str, Any]:
        """Return the config a candidate runs with: the baseline's, and the changes of its chain in order."""
        chain: list[Candidate] = [candidate]
        while chain[0].builds_on in self.others and chain[0].builds_on not in {link.id for link in chain}:
            chain.insert(0, self.others[chain[0].builds_on])
        data = dict(self.base)
        for link in chain:
            data = apply_changes(data, link.changes) if self.is_config else data | flat_keys(link.changes)
        return data

    def is_same(self, candidate: Candidate, other: Candidate | None) -> bool:
        """Say whether two candidates run the same code and config, within tolerance; None is the baseline."""
        other_config = dict(self.base)
        other_code = self._code(BASELINE)
        if other is not None:
            other_config = self.effective(other)
            other_code = self._code(other.id)
        if self._code(candidate.id) != other_code:
            return False
        config = comparable(self.effective(candidate), is_config=self.is_config)
        return is_close(config, comparable(other_config, is_config=self.is_config))

    def _code(self, id: str) -> str:
        return self.code.get(id, NO_CODE_CHANGE).sha256


def _value_problems(candidate: Candidate, study: _Alternatives) -> Problems:
    if study.is_config:
        yield from _config_problems(candidate, study)
        return
    for key, value in flat_keys(candidate.changes).items():
        default = study.base.get(key)
        if is_plain(value) and default is not None and not is_alike(value, default):
            message = f"`{key}` is {json.dumps(value)}; the baseline's is {json.dumps(default)}, of another type"
            yield Refusal("VALUE", message, SHOW_KEYS)


def _config_problems(candidate: Candidate, study: _Alternatives) -> Problems:
    try:
        checked = load.check_data(study.effective(candidate), source=candidate.id)
    except ConfigError as error:  # an index that a list does not have
        yield Refusal("KEY", f"{error.message}; {error.hint}", SHOW_KEYS)
        return
    for located in checked.errors:
        code = "KEY" if located.problem.is_unknown_key else "VALUE"
        yield Refusal(code, located.with_hint, SHOW_KEYS)


def _duplicates(candidate: Candidate, study: _Alternatives) -> Problems:
    is_pending = candidate.id not in study.code and candidate.kind != "hyperparameter"
    if is_pending and not candidate.changes:
        return  # its code is still to be written
    try:
        if study.is_same(candidate, None):
            yield Refusal("NO_CHANGE", "it changes nothing: the same as the baseline", rlx("next"))
            return
        same = [other.id for other in study.others.values() if study.is_same(candidate, other)]
    except RlxError:
        return  # `_value_problems` reports it
    for id in same:
        yield Refusal("DUPLICATE", f"it is a duplicate of {id} (within {TOLERANCE:.0%})", rlx("status"))
