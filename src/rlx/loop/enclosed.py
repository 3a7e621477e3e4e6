"""What checkpoints that are folders enclose beside weights: settings and texts, which an eval command may read.

The sides of a comparison differ by the candidate alone: what all seeds of the one side agree on and a seed of the other
says otherwise is the candidate's doing. What is not covered: settings inside of binary files (a pickled config, the
dictionary around a network's weights), texts of more than `LARGEST_BYTES`, and a checkpoint that is one file.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx.config import yaml_lines
from rlx.errors import CheckpointInvalid, ConfigError
from rlx.launch.weights import final_checkpoint
from rlx.loop import scores
from rlx.runs.reader import listed
from rlx.runs.run import Run
from rlx.runs.status import COMPLETED
from rlx.study import foreign, patterns
from rlx.study.changes import keys_of
from rlx.study.lifecycle import Phase
from rlx.study.study import NULL, Study
from rlx.study.task import Place

LARGEST_BYTES = 2**20
LONGEST_TOLD = 500
REMEDY = (
    "let the checkpoint be the weights' file alone (adapter.checkpoint), or the eval command read the repository's own "
    "settings; keys that are about learning alone are listed by the task (surfaces.hyperparameters.keys)"
)
REPEATING = "hydra.yaml"
"""Hydra's own settings: of a program's it repeats what stands in the files beside it."""
Said = Mapping[tuple[str, str], Any]
"""What a checkpoint says, by file and key; a text without keys by its file and no key."""
_ABSENT = object()


@dataclass(frozen=True)
class Enclosed:
    """What a comparison is told of the sides' settings: a reason not to believe it, or a note, or nothing."""

    objections: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def enclosed(study: Study, sides: Mapping[str, Phase]) -> Enclosed:
    """Compare what the checkpoints of two sides say: what may be more than learning makes evidence invalid."""
    evaluation = study.contract().evaluation
    if evaluation is None or evaluation.level != "pinned":
        return Enclosed()
    told = ([said(path, root=study.root) for path in _checkpoints(study, *side)] for side in sides.items())
    found, (ours, theirs) = differing(*told), sides
    learning = study.task().surfaces.get("hyperparameters", Place()).keys
    others = [one for one in found if not _is_covered(one[1], learning)]
    if others and not _changes_alone(learning, study, ours, theirs):
        return Enclosed(objections=(f"{_says(others, ours, theirs)}; {REMEDY}",))
    return Enclosed(notes=(_says(found, ours, theirs),) if found else ())


def _says(found: Iterable[tuple[str, str]], ours: str, theirs: str) -> str:
    keys: dict[str, list[str]] = {}
    for file, key in found:
        keys.setdefault(file, []).extend([key] if key else [])
    told = "; ".join(f"{file} ({listed(named)})" if named else file for file, named in keys.items())
    plain = "".join(one if one.isprintable() else "?" for one in told)[:LONGEST_TOLD]
    return f"the checkpoints of {theirs} say something else than those of {ours}, and the eval may read it: {plain}"


def _is_covered(key: str, learning: Sequence[str]) -> bool:
    return bool(key) and any(patterns.covers_key(one, key) for one in learning)


def _changes_alone(learning: Sequence[str], study: Study, ours: str, theirs: str) -> bool:
    """Say whether two candidates differ in such keys and in nothing else."""
    if (study.patch(ours) or b"") != (study.patch(theirs) or b""):
        return False
    chains = (study.chain(name) if name not in NULL else [] for name in (ours, theirs))
    keys = [{key for one in chain for key in keys_of(one.changes)} for chain in chains]
    return all(_is_covered(key, learning) for key in keys[0] | keys[1])


def _checkpoints(study: Study, name: str, phase: Phase) -> Iterator[Path]:
    for job in scores.ended(study.state(), name, phase):
        run = Run(study.root / "runs" / str(job.run))
        for seed in job.counted_seeds:
            if job.seed_states.get(seed) == COMPLETED:
                with contextlib.suppress(CheckpointInvalid):  # altered: it is not measured, or `verify` says so
                    yield final_checkpoint(run.seed(seed))


def differing(ours: Sequence[Said], theirs: Sequence[Said]) -> list[tuple[str, str]]:
    """Return files and keys that all of ours say the same of, and one of theirs something else."""
    found = []
    for place in dict.fromkeys(place for one in (*ours, *theirs) for place in one):
        usual, *others = (one.get(place, _ABSENT) for one in ours or ({},))
        is_agreed = all(one == usual for one in others) and not patterns.is_seed_key(place[1])
        if is_agreed and any(one.get(place, _ABSENT) != usual for one in theirs):
            found.append(place)
    return found


def said(checkpoint: Path, *, root: Path) -> Said:
    """Return what a folder's files say beside weights; of a run's and a tree's own folder the name does not count.

    Numbers in the names of files are times, seeds or steps.
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
    """Return the keys of a config and their values; of a list of `key=value` those keys."""
    if path.suffix in (".yaml", ".yml", ".json", ".toml"):
        known = dict(foreign.flat(foreign.read(path)))
        return known or _overrides(text)
    return {}


def _overrides(text: str) -> dict[str, Any]:
    try:
        data = yaml_lines.value(text, source="overrides")
    except (ConfigError, RecursionError):
        return {}
    words = [one.partition("=") for one in data if isinstance(one, str)] if isinstance(data, list) else []
    return {key.lstrip("+~"): value for key, mark, value in words if mark}
