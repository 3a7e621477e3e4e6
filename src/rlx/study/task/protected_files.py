"""Protected files and config keys: a score depends on them, so no candidate may touch them; found without running code.

Not covered: modules imported under a computed name, project files of an environment that is known only by a registered
id, data files, and installed packages. They are pinned with the evaluator's copy of the tree, or are the same for both
sides.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rlx.config import layers, load
from rlx.config.key_docs import OTHER_NAMES
from rlx.config.schema import Experiment, Wrapper
from rlx.config.schema_map import dotted_keys
from rlx.errors import RlxError, did_you_mean
from rlx.evaluate.env_sources import files_behind
from rlx.study.candidate import path_patterns
from rlx.study.task.repo_files import files_in
from rlx.study.task.task import ALL_KEYS, PathsAndKeys, Task, entry_files

RLX_KEYS = ("eval.*", "env.id", "seed", "seeds", "run_name", "extends", "schema")
"""Keys of an rlx config that define the evaluation, its environment and the seeds."""
TERMS = "reward_terms"
REWARD_WRAPPERS = ("clip_reward", "scale_reward", "ClipReward", "TransformReward", "NormalizeReward")


def keys(task: Task) -> tuple[str, ...]:
    """Return the config keys that belong to the evaluator."""
    names = list(_evaluator_surface(task).keys)
    if task.adapter.kind == "rlx":
        names += RLX_KEYS
    return tuple(dict.fromkeys(names))


def _evaluator_surface(task: Task) -> PathsAndKeys:
    return task.surfaces.get("evaluator", PathsAndKeys())


def paths(task: Task) -> tuple[str, ...]:
    """Return the path patterns that belong to the evaluator according to the task; reads no files."""
    adapter = task.adapter
    names = list(_evaluator_surface(task).paths)
    names += [word for word in (*adapter.prefix, *adapter.eval) if word.endswith((".py", ".sh")) and "{" not in word]
    if adapter.config:
        names.append(adapter.config)
    if adapter.result and adapter.result.path and "{" not in adapter.result.path:
        names.append(adapter.result.path)
    return tuple(dict.fromkeys(name.removeprefix("./") for name in names))


def evaluator_files(task: Task, root: Path) -> tuple[str, ...]:
    """Return the evaluator's files: its surface, the eval command's files, the config and the files that it extends.

    Regions of the evaluator's surface are returned as they are written.
    """
    patterns = paths(task)
    whole = [pattern for pattern in patterns if path_patterns.split(pattern)[1] is None]
    matching: list[str] = []
    if any(path_patterns.is_glob(pattern) or (root / pattern).is_dir() for pattern in whole):
        for file in files_in(root):
            if any(path_patterns.covers_path(pattern, file) for pattern in whole):
                matching.append(file)
    entries = entry_files(task.adapter.eval, task.adapter, root)
    return tuple(dict.fromkeys((*patterns, *matching, *entries, *_bases(task, root))))


def metric_files(task: Task, root: Path) -> tuple[str, ...]:
    """Return the files behind the evaluation protocol: the evaluation environment's files and their imports."""
    adapter = task.adapter
    names = tuple(name for name in (adapter.env, *entry_files(adapter.eval, adapter, root)) if name)
    if adapter.kind == "rlx":
        names = _protocol_names(task, root)
    return files_behind(names, root=root, folders=adapter.python_path)


def experiment_of(task: Task, root: Path) -> Experiment | None:
    """Return the task's resolved config; None if it has none that can be read."""
    if task.adapter.config is None:
        return None
    try:
        return load.read(root / task.adapter.config)
    except RlxError:
        return None


def known_keys(task: Task, root: Path) -> tuple[str, ...]:
    """Return the config keys that a task's training accepts; empty if they are not known."""
    if task.adapter.kind == "command":
        return command_keys(task)
    experiment = experiment_of(task, root)
    if experiment is None:
        return ()
    own = [f"env.kwargs.{name}" for name in experiment.env.kwargs]
    own += [f"policy.kwargs.{name}" for name in experiment.policy.kwargs]
    return tuple(dict.fromkeys((*dotted_keys(experiment.algo.name), *own)))


def command_keys(task: Task) -> tuple[str, ...]:
    """Return the keys that a training command accepts, if its options or its config file list all of them."""
    lists_all = any(fact.what == ALL_KEYS for fact in task.facts)
    if task.adapter.kind != "command" or not (lists_all or task.adapter.config_system in ("argparse", "yaml")):
        return ()
    keys_of_surfaces = [key for place in task.surfaces.values() for key in place.keys]
    return (*task.adapter.defaults, *(key for key in keys_of_surfaces if not path_patterns.is_glob(key)))


def unknown_keys(keys: Iterable[str], task: Task, known: Sequence[str]) -> dict[str, str]:
    """Return the keys that a training does not accept, each with the closest known key.

    Returns nothing if a key may choose a Hydra group (a word without a dot, or with a sign): another group has other
    keys.
    """
    unknown = {}
    for key in keys:
        meant = unknown_key(key, known)
        if known and meant is not None:
            unknown[key] = meant
    if task.adapter.config_system == "hydra" and any("." not in key or key[0] in "+~" for key in unknown):
        return {}
    return unknown


def unknown_key(pattern: str, known: Sequence[str]) -> str | None:
    """Return the key that is closest to an unknown pattern, or an empty text; None if the pattern is known.

    Below sections that accept any key (`env.kwargs`), a name is unknown only if it is almost a known one.
    """
    stem = pattern.removesuffix(".*")
    if any(path_patterns.covers_key(pattern, key) or path_patterns.covers_key(stem, key) for key in known):
        return None
    near = OTHER_NAMES.get(stem.rpartition(".")[2], "")
    if near not in known:
        near = did_you_mean(stem, tuple(known)) or ""
    parts = stem.split(".")
    sections = [".".join(parts[:depth]) for depth in range(1, len(parts))]
    is_free = "env.wrappers" in sections or any(name in known and name.endswith(".kwargs") for name in sections)
    is_same_section = bool(near) and near.rpartition(".")[0] == stem.rpartition(".")[0]
    if is_free and not is_same_section:
        return None
    return near


def _protocol_names(task: Task, root: Path) -> tuple[str, ...]:
    """Return the parts of the evaluation env: its id and its wrappers, without those that only shape rewards."""
    experiment = experiment_of(task, root)
    if experiment is None:
        return ()
    env_id, wrappers = _evaluation_env(experiment)
    return (env_id, *(wrapper.name for wrapper in wrappers if not shapes_reward(wrapper.name, root)))


def _evaluation_env(experiment: Experiment) -> tuple[str, tuple[Wrapper, ...]]:
    env_id = experiment.env.id
    wrappers = experiment.env.wrappers
    changed = experiment.eval.env
    if changed and changed.wrappers is not None:
        wrappers = changed.wrappers
    if changed and changed.id:
        env_id = changed.id
    return env_id, wrappers


def reward_terms(task: Task, root: Path) -> tuple[str, ...] | None:
    """Return the reward terms of the evaluation env that its config and file name; None if they cannot be read."""
    experiment = experiment_of(task, root)
    if experiment is None:
        return ()
    env_id, wrappers = _evaluation_env(experiment)
    in_config = tuple(name for wrapper in wrappers if wrapper.name == TERMS for name in wrapper.kwargs)
    file = env_id.rpartition(":")[0]
    if not file.endswith(".py"):
        return in_config
    in_file = _terms_in_file(root / file)
    if in_file is None:
        return None
    return (*in_config, *in_file)


def _terms_in_file(file: Path) -> tuple[str, ...] | None:
    """Return the names of the terms that an env's file puts under `reward_terms`; None if they are computed."""
    try:
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
    except (OSError, SyntaxError, ValueError):
        return ()
    pairs = [pair for node in nodes if isinstance(node, ast.Dict) for pair in zip(node.keys, node.values, strict=True)]
    assigned = [(target, node.value) for node in nodes if isinstance(node, ast.Assign) for target in node.targets]
    pairs += [(target.slice, value) for target, value in assigned if isinstance(target, ast.Subscript)]
    values = [value for key, value in pairs if isinstance(key, ast.Constant) and key.value == TERMS]
    if not values:
        return ()
    texts = {ast.unparse(value) for value in values}
    values += [value for target, value in assigned if ast.unparse(target) in texts]
    keys_of_terms = [key for value in values if isinstance(value, ast.Dict) for key in value.keys]
    names = [key.value for key in keys_of_terms if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    if not keys_of_terms or len(names) < len(keys_of_terms):
        return None
    return tuple(names)


def shapes_reward(name: str, root: Path) -> bool:
    """Return whether a wrapper changes only the reward, by its name or by the base of its class."""
    if name in REWARD_WRAPPERS:
        return True
    file, _, kind = name.rpartition(":")
    if not file.endswith(".py"):
        return False
    try:
        tree = ast.parse((root / file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind]
    return any("RewardWrapper" in ast.unparse(base) for node in classes for base in node.bases)


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
