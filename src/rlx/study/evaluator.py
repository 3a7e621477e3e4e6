"""What a score is computed from: files and config keys that no candidate may touch, found without running anything.

What is not covered: modules imported under a computed name, files of the project behind an env that is only known by
a registered id, data files, and installed packages. They are pinned with the evaluator's copy of the tree, or are the
same for both sides.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlx.config import layers, load
from rlx.config.keys import OTHER_NAMES
from rlx.config.schema import Experiment
from rlx.config.sections import dotted_keys
from rlx.errors import RlxError, did_you_mean
from rlx.evaluate.sources import files_behind
from rlx.study import patterns
from rlx.study.listing import files_in
from rlx.study.task import TOLD_WHOLE, Task, entry_files

RLX_KEYS = ("eval.*", "env.id", "seed", "seeds", "run_name", "extends", "schema")
"""Keys of an rlx config that say how a policy is measured, which world it is measured in, and which replicate it is."""
TERMS = "reward_terms"
REWARD_WRAPPERS = ("clip_reward", "scale_reward", "ClipReward", "TransformReward", "NormalizeReward")


def keys(task: Task) -> tuple[str, ...]:
    """Return the config keys that belong to the evaluator."""
    named = task.surfaces["evaluator"].keys if "evaluator" in task.surfaces else ()
    return tuple(dict.fromkeys((*named, *(RLX_KEYS if task.adapter.kind == "rlx" else ()))))


def paths(task: Task) -> tuple[str, ...]:
    """Return the patterns of paths that belong to the evaluator by what the task says, without looking at files."""
    adapter = task.adapter
    named = task.surfaces["evaluator"].paths if "evaluator" in task.surfaces else ()
    scripts = [word for word in (*adapter.prefix, *adapter.eval) if word.endswith((".py", ".sh")) and "{" not in word]
    config = [adapter.config] if adapter.config else []
    result = [adapter.result.path] if adapter.result and adapter.result.path and "{" not in adapter.result.path else []
    return tuple(dict.fromkeys(name.removeprefix("./") for name in (*named, *scripts, *config, *result)))


def own_files(task: Task, root: Path) -> tuple[str, ...]:
    """Return the files that are the evaluator: its surface, the eval command's files, the config and what it extends.

    Regions of the evaluator's surface stay as they are written.
    """
    named = paths(task)
    whole = [name for name in named if patterns.split(name)[1] is None]
    there = files_in(root) if any(patterns.is_glob(name) or (root / name).is_dir() for name in whole) else ()
    found = [file for file in there if any(patterns.covers_path(name, file) for name in whole)]
    entries = entry_files(task.adapter.eval, task.adapter, root)
    return tuple(dict.fromkeys((*named, *found, *entries, *_bases(task, root))))


def behind_files(task: Task, root: Path) -> tuple[str, ...]:
    """Return the files that the evaluator's protocol is computed from: the evaluation env's, and what they import."""
    adapter = task.adapter
    if adapter.kind == "rlx":
        names = _protocol_names(task, root)
    else:
        names = tuple(name for name in (adapter.env, *entry_files(adapter.eval, adapter, root)) if name)
    return files_behind(names, root=root, folders=adapter.python_path)


def experiment_of(task: Task, root: Path) -> Experiment | None:
    """Return the task's resolved config; None where it has none that can be read."""
    if task.adapter.config is None:
        return None
    try:
        return load.read(root / task.adapter.config)
    except RlxError:
        return None


def known_keys(task: Task, root: Path) -> tuple[str, ...]:
    """Return the config keys that a task's training takes; empty where that is not known."""
    if task.adapter.kind == "command":
        return command_keys(task)
    experiment = experiment_of(task, root)
    if experiment is None:
        return ()
    own = [f"{section}.{name}" for section, given in _free(experiment).items() for name in given]
    return tuple(dict.fromkeys((*dotted_keys(experiment.algo.name), *own)))


def command_keys(task: Task) -> tuple[str, ...]:
    """Return the keys that a training command takes, where its options or its config file say all of them."""
    named = [key for place in task.surfaces.values() for key in place.keys if not patterns.is_glob(key)]
    is_said = task.adapter.config_system in ("argparse", "yaml") or any(one.what == TOLD_WHOLE for one in task.facts)
    return (*task.adapter.defaults, *named) if is_said and task.adapter.kind == "command" else ()


def _free(experiment: Experiment) -> dict[str, Mapping[str, Any]]:
    """Return the sections of a config that take any key, with what they have."""
    return {"env.kwargs": experiment.env.kwargs, "policy.kwargs": experiment.policy.kwargs}


def unknown_keys(keys: Iterable[str], task: Task, known: Sequence[str]) -> dict[str, str]:
    """Return the keys that a training does not take, each with what may have been meant.

    None where one may choose a group of Hydra's (a word without a dot, or with its sign): another has other keys.
    """
    found = {key: meant for key in keys if known and (meant := unknown_key(key, known)) is not None}
    may_choose = task.adapter.config_system == "hydra" and any("." not in key or key[0] in "+~" for key in found)
    return {} if may_choose else found


def unknown_key(pattern: str, known: Sequence[str]) -> str | None:
    """Say what may have been meant by a pattern that no known key fits: a key, or nothing; None where one fits.

    Below sections that take any key (`env.kwargs`) another name is unknown only where it is almost one that is there.
    """
    stem = pattern.removesuffix(".*")
    if any(patterns.covers_key(pattern, key) or patterns.covers_key(stem, key) for key in known):
        return None
    other = OTHER_NAMES.get(stem.rpartition(".")[2], "")
    near = other if other in known else did_you_mean(stem, tuple(known)) or ""
    is_free = any(part in known and part.endswith(".kwargs") for part in _above(stem)) or "env.wrappers" in _above(stem)
    is_same_place = near.rpartition(".")[0] == stem.rpartition(".")[0]
    return None if is_free and not (near and is_same_place) else near


def _above(key: str) -> list[str]:
    parts = key.split(".")
    return [".".join(parts[:depth]) for depth in range(1, len(parts))]


def _protocol_names(task: Task, root: Path) -> tuple[str, ...]:
    """Return what the evaluation env is made from: its id and its wrappers, without those that only shape rewards."""
    experiment = experiment_of(task, root)
    if experiment is None:
        return ()
    own = experiment.eval.env
    wrappers = own.wrappers if own and own.wrappers is not None else experiment.env.wrappers
    kept = [one.name for one in wrappers if not shapes_reward(one.name, root)]
    return (own.id if own and own.id else experiment.env.id, *kept)


def reward_terms(task: Task, root: Path) -> tuple[str, ...] | None:
    """Return the reward terms of the evaluation env that config and env file name; None where they cannot be read."""
    experiment = experiment_of(task, root)
    if experiment is None:
        return ()
    own = experiment.eval.env
    wrappers = own.wrappers if own and own.wrappers is not None else experiment.env.wrappers
    named = tuple(name for one in wrappers if one.name == TERMS for name in one.kwargs)
    file = (own.id if own and own.id else experiment.env.id).rpartition(":")[0]
    told = _terms_told(root / file) if file.endswith(".py") else ()
    return None if told is None else (*named, *told)


def _terms_told(file: Path) -> tuple[str, ...] | None:
    """Return the names of the terms that an env's file puts under `reward_terms`; None where they are computed."""
    try:
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
    except (OSError, SyntaxError, ValueError):
        return ()
    pairs = [pair for node in nodes if isinstance(node, ast.Dict) for pair in zip(node.keys, node.values, strict=True)]
    assigned = [(target, node.value) for node in nodes if isinstance(node, ast.Assign) for target in node.targets]
    pairs += [(target.slice, value) for target, value in assigned if isinstance(target, ast.Subscript)]
    told = [value for key, value in pairs if isinstance(key, ast.Constant) and key.value == TERMS]
    literal = [one for value in told for one in (value, *_meanings(value, assigned)) if isinstance(one, ast.Dict)]
    names = [key.value if isinstance(key, ast.Constant) else None for one in literal for key in one.keys]
    is_read = bool(literal) and all(isinstance(name, str) for name in names)
    return tuple(map(str, names)) if is_read else None if told else ()


def _meanings(value: ast.expr, assigned: Sequence[tuple[ast.expr, ast.expr]]) -> list[ast.expr]:
    """Return what is assigned to a name or attribute."""
    return [given for target, given in assigned if ast.unparse(target) == ast.unparse(value)]


def shapes_reward(name: str, root: Path) -> bool:
    """Say whether a wrapper changes nothing but the reward, by its name or by the base its class names."""
    if name in REWARD_WRAPPERS:
        return True
    file, _, kind = name.rpartition(":")
    if not file.endswith(".py"):
        return False
    try:
        tree = ast.parse((root / file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    found = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind]
    return any("RewardWrapper" in ast.unparse(base) for node in found for base in node.bases)


def _bases(task: Task, root: Path) -> Iterator[str]:
    """Yield the files of the project that the config extends."""
    if task.adapter.config is None:
        return
    try:
        stacked = layers.stack(root / task.adapter.config).document
    except RlxError:
        return
    for place in stacked.places.values():
        path = Path(place.source)
        if path.is_file() and path.resolve().is_relative_to(root.resolve()):
            yield path.resolve().relative_to(root.resolve()).as_posix()
