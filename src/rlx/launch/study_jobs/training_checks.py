"""Check what the trainings of a repository's own command really did: settings, environment steps, first results.

The job's own interpreter records the options that argparse read and the steps of Gymnasium environments
(`runs.module_recorder`). Config files that the program wrote into its output folder count too. Limits: a program that
reads its settings otherwise and writes none of them, environments that are not Gymnasium's or run in processes of
`multiprocessing`, and code that hides what it did.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rlx.launch.study_jobs.candidate_check import LONGER
from rlx.number_format import figure, listed
from rlx.runs import loaded_modules
from rlx.runs.readers.metric_dialects import RETURN
from rlx.runs.run import Run, Seed
from rlx.runs.status import COMPLETED
from rlx.study.candidate import path_patterns
from rlx.study.candidate.candidate_experiment import changes_of
from rlx.study.candidate.config_changes import flat_keys, is_close
from rlx.study.study_folder import UNCHANGED, Study
from rlx.study.task import repo_configs
from rlx.study.task.task import Adapter

MOST_FILES = 50
LARGEST_BYTES = 2**20
LONGEST_VALUE = 60
CONFIG_FILES = (".yaml", ".yml", ".json", ".toml")
# Keys that multiply the data of a training whose length counts something else than environment steps.
_DATA_KEY = re.compile(
    r"(num|n|number[-_]of)[-_]?(parallel[-_])?(envs?|environments|actors|workers|agents)"
    r"|(num|n)[-_]steps([-_]per[-_]\w+)?|steps[-_]per[-_]\w+|rollout[-_]\w+|horizon([-_]length)?|frames[-_]per[-_]\w+",
    re.I,
)
_STEP_WORD = re.compile(r"(time-?steps?|env[-_]?steps?|frames|samples|interactions)", re.I)
Settings = Mapping[str, tuple[Any, ...]]
"""The values of settings by name: several processes or files may say different ones."""


@dataclass(frozen=True)
class TrainingSide:
    """One side of a comparison: the candidate, its finished seeds, and the changes that it states."""

    name: str
    seeds: tuple[Seed, ...]
    stated: Mapping[str, Any]
    patch: bytes

    @classmethod
    def of(cls, study: Study, name: str, runs: Iterable[Run]) -> TrainingSide:
        """Read a side from its runs."""
        seeds = tuple(seed for run in runs for seed in run.seeds if seed.status.state == COMPLETED)
        if name in UNCHANGED:
            return cls(name, seeds, {}, b"")
        return cls(name, seeds, flat_keys(changes_of(study.chain(name))), study.patch(name) or b"")

    @property
    def env_steps(self) -> int:
        """The most environment steps of a seed; 0 if rlx saw none."""
        return max((loaded_modules.read(seed.folder).env_steps for seed in self.seeds), default=0)


def problems(adapter: Adapter, ours: TrainingSide, theirs: TrainingSide) -> Iterator[str]:
    """Yield why the trainings of two sides do not show the change that the candidate states."""
    if adapter.kind != "command":
        return
    for side in (ours, theirs):
        yield from _unlike_stated(adapter, side)
    if ours.patch == theirs.patch:
        for name in _unexplained(ours, theirs):
            yield f"the trainings of {theirs.name} and {ours.name} differ in `{name}`, which no candidate states"
    yield from _more_data(adapter, ours, theirs)


def notes(adapter: Adapter, ours: TrainingSide, theirs: TrainingSide) -> Iterator[str]:
    """Yield the settings that differ because of a candidate's code."""
    if adapter.kind == "command" and ours.patch != theirs.patch:
        names = list(_unexplained(ours, theirs))
        if names:
            yield f"its code also changes settings: {listed([f'`{name}`' for name in names])}"


def _unlike_stated(adapter: Adapter, side: TrainingSide) -> Iterator[str]:
    """Yield the stated changes that a seed's training did not use, each once."""
    for key, value in side.stated.items():
        for seed in side.seeds:
            settings = effective_settings(seed)
            used = _values_of(key, settings)
            if not used and _is_taken_as_text(adapter, key, value, settings):
                continue
            is_dropped = not used and any(
                _is_taken_as_text(adapter, other, known, settings) for other, known in side.stated.items()
            )
            if is_dropped:
                yield f"{side.name} says {key} = {_shown(value)}, but its training dropped it (seed {seed.number})"
                break
            if used and not any(_is_same(value, found) for found in used):
                shown = listed([_shown(found) for found in used])
                yield f"{side.name} says {key} = {_shown(value)}, but seed {seed.number} trained with {shown}"
                break


def effective_settings(seed: Seed) -> dict[str, tuple[Any, ...]]:
    """Return the settings that a seed's training used, by name with underscores: options, and files that it wrote."""
    found: dict[str, list[Any]] = {}
    for options in loaded_modules.read(seed.folder).options:
        for name, value in options.items():
            found.setdefault(_name(name), []).append(value)
    output = seed.folder / "output"
    for path in _config_files(output):
        for key, value in repo_configs.flat(repo_configs.read(path)):
            found.setdefault(_name(key), []).append(value)
    return {name: tuple(values) for name, values in found.items()}


def _config_files(folder: Path) -> list[Path]:
    paths = []
    for path in sorted(folder.rglob("*")):
        is_config = path.suffix in CONFIG_FILES and path.name != "hydra.yaml"  # which repeats the others
        if is_config and path.is_file() and not path.is_symlink() and path.stat().st_size <= LARGEST_BYTES:
            paths.append(path)
        if len(paths) >= MOST_FILES:
            break
    return paths


def _name(key: str) -> str:
    return key.lstrip("-+").replace("-", "_").lower()


def _values_of(key: str, settings: Settings) -> tuple[Any, ...]:
    """Return the values of a key: by its whole name, or by its last part if only one setting has that."""
    name = _name(key)
    if name in settings:
        return settings[name]
    last = name.rpartition(".")[2]
    found = [known for known in settings if known.rpartition(".")[2] == last or known == name.replace(".", "_")]
    if len(found) == 1:
        return settings[found[0]]
    return ()


def _is_taken_as_text(adapter: Adapter, key: str, value: Any, settings: Settings) -> bool:
    """Say whether an option holds the key as it was written, for example `lr:0.1` in a list of changes."""
    words = [word for word in adapter.override.split() if "{key}" in word and "{value}" in word]
    spelled = value if isinstance(value, str) else json.dumps(value)
    texts = {word.replace("{key}", key).replace("{value}", spelled) for word in words}
    for values in settings.values():
        for found in values:
            items = found if isinstance(found, list) else [found]
            if any(isinstance(item, str) and item in texts for item in items):
                return True
    return False


def _is_same(stated: Any, found: Any) -> bool:
    if is_close(stated, found) or str(stated) == str(found):
        return True
    if isinstance(found, str):
        try:
            return is_close(stated, json.loads(found))
        except ValueError:
            return False
    return isinstance(stated, (int, float)) and isinstance(found, (int, float)) and float(stated) == float(found)


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)[:LONGEST_VALUE]
    return "".join(character if character.isprintable() else "?" for character in text)


def _unexplained(ours: TrainingSide, theirs: TrainingSide) -> Iterator[str]:
    """Yield the settings that all seeds of one side share and the other side changes, without a candidate saying so."""
    if len(ours.seeds) < 2 or not theirs.seeds:
        return
    first = [effective_settings(seed) for seed in ours.seeds]
    second = [effective_settings(seed) for seed in theirs.seeds]
    stated = {_name(key) for side in (ours, theirs) for key in side.stated}
    for name in sorted(set(first[0]).intersection(*first[1:], *second)):
        usual = first[0][name]
        is_agreed = all(_is_value_alike(settings[name], usual) for settings in first)
        is_named = path_patterns.is_seed_key(name) or any(_is_about(name, key) for key in stated)
        if is_agreed and not is_named and not any(_is_value_alike(settings[name], usual) for settings in second):
            yield name


def _is_about(name: str, key: str) -> bool:
    return name == key or name.rpartition(".")[2] == key.rpartition(".")[2] or name == key.replace(".", "_")


def _is_value_alike(values: Sequence[Any], usual: Sequence[Any]) -> bool:
    """Compare values; places and lists of changes are not settings of their own."""
    return all(
        value == other or isinstance(value, (list, dict)) or (isinstance(value, str) and "/" in value)
        for value, other in zip(values, usual, strict=False)
    )


def _more_data(adapter: Adapter, ours: TrainingSide, theirs: TrainingSide) -> Iterator[str]:
    """Yield that one side saw more of its environment, or that rlx cannot count what a change multiplies."""
    if ours.env_steps and theirs.env_steps:
        if theirs.env_steps > LONGER * ours.env_steps:
            yield (
                f"{theirs.name} trained on {theirs.env_steps:,} environment steps, {ours.name} on {ours.env_steps:,}: "
                "more data is not an improvement"
            )
        return
    if _counts_env_steps(adapter):
        return
    own = {key for key, value in theirs.stated.items() if ours.stated.get(key) != value}
    for key in sorted(own):
        if _DATA_KEY.fullmatch(key.rpartition(".")[2]):
            yield (
                f"{theirs.name} changes `{key}`, which can multiply the data of a training, and rlx cannot count its "
                "environment steps; let the length of the training be given in environment steps ({steps})"
            )


def _counts_env_steps(adapter: Adapter) -> bool:
    """Say whether the option that takes `{steps}` is named after environment steps."""
    words = adapter.train
    for index, word in enumerate(words):
        if "{steps}" in word:
            before = word.partition("{steps}")[0] or (words[index - 1] if index else "")
            return bool(_STEP_WORD.search(before))
    return False


def first_results(study: Study, ours: TrainingSide, theirs: TrainingSide) -> Iterator[str]:
    """Yield the first and the last value that the trainings logged, because rlx did not see them learn."""
    metric = study.contract().metric
    if study.task().adapter.kind != "command" or metric is None:
        return
    for name in (metric.name, RETURN):
        sides = [_first_and_last(side, name) for side in (ours, theirs)]
        if None in sides:
            continue
        (our_first, our_last), (first, last) = sides  # type: ignore[misc]
        words = (
            f"logged `{name}`, first to last row: {theirs.name} {figure(first)} to {figure(last)}, "
            f"{ours.name} {figure(our_first)} to {figure(our_last)}"
        )
        sign = 1.0
        if metric.direction == "minimize" and name != RETURN:
            sign = -1.0
        if sign * first > max(sign * our_first, sign * our_last):
            words += f". {theirs.name} began above the end of {ours.name}: it may have learned elsewhere"
        yield words
        return
    yield "its trainings logged neither the metric nor a return: their first results are unknown"


def _first_and_last(side: TrainingSide, name: str) -> tuple[float, float] | None:
    """Return the median over seeds of the first and the last logged value."""
    runs = {seed.folder.parent: Run(seed.folder.parent) for seed in side.seeds}
    series = [values for run in runs.values() for values in run.series(name).values() if len(values.values)]
    if not series:
        return None
    return median(float(one.values[0]) for one in series), median(float(one.values[-1]) for one in series)
