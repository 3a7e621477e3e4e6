"""Checks on evidence: an approved contract, unaltered files, the checked code, equal lengths, equal settings.

After an approval expires no job starts, but earlier trainings may still be measured and judged.

Settings inside checkpoint folders count too, because an eval command may read them. The sides of a comparison differ
only by the candidate. If all seeds of one side agree on a setting and a seed of the other side differs, the candidate
changed it. Limits: rlx does not see settings inside binary files, texts above `LARGEST_BYTES`, or a checkpoint that
is a single file.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx import files
from rlx.config import yaml_lines
from rlx.errors import CheckpointInvalid, ConfigError, FileDamaged
from rlx.launch.git import worktree
from rlx.launch.study_jobs import launch_candidate, loaded_code_check, study_job, training_checks, training_proof
from rlx.launch.study_jobs.candidate_check import LONGER
from rlx.launch.study_jobs.checkpoint_hashes import final_checkpoint
from rlx.launch.study_jobs.launch_facts import approval_problems
from rlx.launch.study_jobs.training_checks import TrainingSide
from rlx.number_format import listed
from rlx.runs.run import Run
from rlx.runs.status import COMPLETED
from rlx.study.candidate import path_patterns
from rlx.study.candidate.config_changes import flat_keys
from rlx.study.contract import contract as contracts
from rlx.study.ledger.lifecycle import NULL_LAUNCHES, Phase
from rlx.study.ledger.records import Standing
from rlx.study.ledger.state import State
from rlx.study.moves import Move, judge
from rlx.study.situation import CandidateFacts, Facts, Situation
from rlx.study.study_folder import UNCHANGED, Study
from rlx.study.task import repo_configs
from rlx.study.task import task as tasks
from rlx.study.task.task import PathsAndKeys


def evidence_situation(study: Study, state: State, candidate: str) -> Situation:
    """Return a study's situation with the facts that measuring and judging a candidate depend on."""
    contract = study.contract()
    altered = {}
    if candidate in state.candidates:
        altered[candidate] = CandidateFacts(altered_files=tuple(altered_code(study, state.candidates[candidate])))
    facts = Facts(
        now=time.time(),
        contract_sha256=contracts.sha256(study.contract_path),
        is_other_task=contract.task_sha256 != tasks.sha256(study.task()),
        approval_problems=approval_problems(study, state),
        candidates=altered,
    )
    return Situation(state, contract, facts)


def require_measurable(study: Study, action: str, candidate: str) -> Situation:
    """Refuse to measure or judge without an approved contract and task, or with unchecked code.

    A refusal is one row of the ledger.
    """
    at = evidence_situation(study, study.state(), candidate)
    refusals = judge(at, Move("measure", candidate))
    if refusals:
        with study.ledger.held() as held:
            launch_candidate.refuse(held, action, candidate, refusals)
    return at


def altered_files(study: Study, standing: Standing) -> list[str]:
    """Return the files of a candidate that differ from what the ledger recorded."""
    proposal = _altered(study.candidate_path(standing.id), standing.sha256, "proposed")
    return [*proposal, *altered_code(study, standing)]


def altered_code(study: Study, standing: Standing) -> list[str]:
    """Return that a candidate's patch differs from the checked one; nothing if it was never checked."""
    if standing.patch is None:
        return []
    return _altered(study.patch_path(standing.id), standing.patch, "checked")


def _altered(path: Path, sha256: str, what: str) -> list[str]:
    try:
        is_same = files.sha256(files.read_bytes(path)) == sha256
    except (OSError, FileDamaged):
        return [f"candidates/{path.name} is gone"]
    return [] if is_same else [f"candidates/{path.name} is not the {what} one"]


def objections(study: Study, sides: Mapping[str, Phase]) -> Iterator[str]:
    """Yield every reason not to believe a comparison of candidates, each in its phase."""
    state, contract, task = study.state(), study.contract(), study.task()
    assert contract.baseline is not None
    runs = {name: [Run(study.root / "runs" / str(job.run)) for job in state.ended_jobs(name, phase)]
            for name, phase in sides.items()}  # fmt: skip
    yield from _unequal_lengths(runs)
    yield from loaded_code_check.differing_installations(*runs.values(), root=study.root)
    identities = {event["run"]: event.get("identity") for event in study.ledger.events() if event.kind == "intent"}
    for name, run in ((name, run) for name, side in runs.items() for run in side):
        if study_job.identity_of(run) != identities.get(run.name):
            yield f"the identity of {run.name} changed after it was launched"
            continue
        tree = study_job.code_folder(run)
        diff = worktree.diff_sha256(worktree.diff(tree, contract.baseline.commit, root=study.root))
        if run.metadata["lineage"]["diff_sha256"] != diff:
            yield f"the code that {run.name} ran changed after it was launched"
        yield from loaded_code_check.problems(run, worktree=tree, root=study.root, contract=contract, task=task)
        if task.adapter.kind == "rlx":
            yield from training_proof.problems(run, must_move=name not in NULL_LAUNCHES)


def _unequal_lengths(runs: Mapping[str, list[Run]]) -> Iterator[str]:
    planned = {name: sorted({run.planned_steps for run in side}) for name, side in runs.items()}
    if len({tuple(steps) for steps in planned.values()}) > 1:
        lengths = ", ".join(f"{name} {' and '.join(map(str, steps))}" for name, steps in planned.items())
        yield f"the sides were trained for different numbers of steps: {lengths}"
    trained = {name: max((seed.step for run in side for seed in run.seeds), default=0)
               for name, side in runs.items()}  # fmt: skip
    names = list(trained)
    head_steps, candidate_steps = trained[names[0]], trained[names[-1]]
    if head_steps and candidate_steps > LONGER * head_steps:
        yield (
            f"{names[-1]} was trained for {candidate_steps:,} steps, {names[0]} for {head_steps:,}: "
            "its last rollout was too long"
        )


LARGEST_BYTES = 2**20
LONGEST_TOLD = 500
REMEDY = (
    "let the checkpoint be the weights' file alone (adapter.checkpoint), or the eval command read the repository's own "
    "settings; keys that are about learning alone are listed by the task (surfaces.hyperparameters.keys)"
)
REPEATING = "hydra.yaml"
"""Hydra's own file, which repeats the settings of the other files."""
Said = Mapping[tuple[str, str], Any]
"""The settings in a checkpoint by file and key; a text without keys has an empty key."""
_ABSENT = object()


@dataclass(frozen=True)
class SettingsComparison:
    """How the settings of two sides differ: an objection, a note, or nothing."""

    objections: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def compare_settings(study: Study, sides: Mapping[str, Phase]) -> SettingsComparison:
    """Compare the settings of two sides: those that their trainings used, and those inside their checkpoints."""
    adapter = study.task().adapter
    ours, theirs = training_sides(study, sides)
    inside = _compare_checkpoints(study, sides)
    return SettingsComparison(
        (*inside.objections, *training_checks.problems(adapter, ours, theirs)),
        (*inside.notes, *training_checks.notes(adapter, ours, theirs)),
    )


def training_sides(study: Study, sides: Mapping[str, Phase]) -> tuple[TrainingSide, TrainingSide]:
    """Return the trainings of both sides of a comparison."""
    state = study.state()
    first, second = (
        TrainingSide.of(study, name, [Run(study.root / "runs" / str(job.run)) for job in state.ended_jobs(name, phase)])
        for name, phase in sides.items()
    )
    return first, second


def _compare_checkpoints(study: Study, sides: Mapping[str, Phase]) -> SettingsComparison:
    """Compare the settings in checkpoints; a difference outside of hyperparameters makes the evidence invalid."""
    evaluation = study.contract().evaluation
    if evaluation is None or evaluation.level != "pinned":
        return SettingsComparison()
    told = ([said(path, root=study.root) for path in _checkpoints(study, *side)] for side in sides.items())
    found, (ours, theirs) = differing(*told), sides
    learning = study.task().surfaces.get("hyperparameters", PathsAndKeys()).keys
    others = [one for one in found if not _is_covered(one[1], learning)]
    if others and not _changes_alone(learning, study, ours, theirs):
        return SettingsComparison(objections=(f"{_says(others, ours, theirs)}; {REMEDY}",))
    return SettingsComparison(notes=(_says(found, ours, theirs),) if found else ())


def _says(found: Iterable[tuple[str, str]], ours: str, theirs: str) -> str:
    keys: dict[str, list[str]] = {}
    for file, key in found:
        keys.setdefault(file, []).extend([key] if key else [])
    told = "; ".join(f"{file} ({listed(named)})" if named else file for file, named in keys.items())
    plain = "".join(one if one.isprintable() else "?" for one in told)[:LONGEST_TOLD]
    return f"the checkpoints of {theirs} differ from those of {ours}, and the eval command may read them: {plain}"


def _is_covered(key: str, learning: Sequence[str]) -> bool:
    return bool(key) and any(path_patterns.covers_key(one, key) for one in learning)


def _changes_alone(learning: Sequence[str], study: Study, ours: str, theirs: str) -> bool:
    """Whether two candidates differ in such keys only."""
    if (study.patch(ours) or b"") != (study.patch(theirs) or b""):
        return False
    chains = (study.chain(name) if name not in UNCHANGED else [] for name in (ours, theirs))
    keys = [{key for one in chain for key in flat_keys(one.changes)} for chain in chains]
    return all(_is_covered(key, learning) for key in keys[0] | keys[1])


def _checkpoints(study: Study, name: str, phase: Phase) -> Iterator[Path]:
    for job in study.state().ended_jobs(name, phase):
        run = Run(study.root / "runs" / str(job.run))
        for seed in job.counted_seeds:
            if job.seed_states.get(seed) == COMPLETED:
                with contextlib.suppress(CheckpointInvalid):  # an altered one is not measured, or `verify` reports it
                    yield final_checkpoint(run.seed(seed))


def differing(ours: Sequence[Said], theirs: Sequence[Said]) -> list[tuple[str, str]]:
    """Return the settings that all seeds of the first side share and a seed of the second side changes."""
    found = []
    for place in dict.fromkeys(place for one in (*ours, *theirs) for place in one):
        usual, *others = (one.get(place, _ABSENT) for one in ours or ({},))
        is_agreed = all(one == usual for one in others) and not path_patterns.is_seed_key(place[1])
        if is_agreed and any(one.get(place, _ABSENT) != usual for one in theirs):
            found.append(place)
    return found


def said(checkpoint: Path, *, root: Path) -> Said:
    """Return the settings in a folder's text files. The names of run and tree folders are ignored.

    Numbers in file names are ignored too: they are times, seeds or steps.
    """
    own = re.compile(rf"{re.escape(str(root))}/(?:runs|\S*/trees)/[^/\s]+")
    found: dict[tuple[str, str], Any] = {}
    for path in sorted(checkpoint.rglob("*")) if checkpoint.is_dir() else ():
        text = _text(path)
        if text is not None and path.name != REPEATING:
            file = re.sub(r"\d+", "#", path.relative_to(checkpoint).as_posix())
            for key, value in (_keys(path, text) or {"": text}).items():
                found[file, key] = own.sub("#", value) if isinstance(value, str) else value
    return found


def _text(path: Path) -> str | None:
    """Return what a file says, if it is text."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_BYTES:
            return None
        content = path.read_bytes()
        return content.decode() if b"\0" not in content else None
    except (OSError, UnicodeDecodeError):
        return None


def _keys(path: Path, text: str) -> dict[str, Any]:
    """Return the keys of a config and their values, or those of a list of `key=value`."""
    if path.suffix in (".yaml", ".yml", ".json", ".toml"):
        known = dict(repo_configs.flat(repo_configs.read(path)))
        return known or _overrides(text)
    return {}


def _overrides(text: str) -> dict[str, Any]:
    try:
        data = yaml_lines.value(text, source="overrides")
    except (ConfigError, RecursionError):
        return {}
    words = [one.partition("=") for one in data if isinstance(one, str)] if isinstance(data, list) else []
    return {key.lstrip("+~"): value for key, mark, value in words if mark}
