"""Infer a task: completely from an rlx config, or as a draft from the commands of a foreign repository."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlx import files
from rlx.config import layers, load
from rlx.config.schema import Experiment, Source
from rlx.config.yaml_lines import Document
from rlx.errors import ConfigError, UsageError
from rlx.evaluate.env_sources import files_behind
from rlx.study.candidate import path_patterns, source_region
from rlx.study.task import hydra_configs, repo_configs
from rlx.study.task.argparse_options import options_of
from rlx.study.task.protected_files import RLX_KEYS, shapes_reward
from rlx.study.task.reward_regions import (
    factory_wrappers,
    file_and_name,
    import_roots,
    is_region,
    reward_regions,
    wrapper_regions,
    wrappers_behind,
)
from rlx.study.task.task import (
    ALL_KEYS,
    READERS,
    TRAINS,
    Adapter,
    Argv,
    Card,
    Fact,
    PathsAndKeys,
    Surface,
    Task,
    entry_files,
)

HYPERPARAMETERS = ("algo.*", "policy.*", "env.normalize.*", "env.num_envs")
RANDOMISED = re.compile(r"random|noise|friction|mass|perturb|delay|latency|push", re.I)
STAGED = re.compile(r"difficulty|level|curriculum|stage", re.I)
OVERRIDES = {"hydra": "{key}={value}", "argparse": "--{key}={value}", "tyro": "--{key}={value}"}


def task_from_config(config: Path, *, root: Path, name: str, mission: str = "") -> Task:
    """Infer a task from an rlx config of the project: its surfaces, and its facts with file, line and hash."""
    file = _inside(config, root)
    _refuse_foreign(root / file, file)
    stacked = layers.stack(root / file).document
    experiment = load.read(root / file)
    usual = f"Improve the {experiment.eval.metric or 'return'} of {experiment.algo.name} on {_env(experiment)}."
    return Task(
        name=name,
        card=Card(mission=mission or usual),
        adapter=Adapter(kind="rlx", config=file, config_system="rlx", steps=experiment.algo.total_timesteps),
        surfaces=_surfaces(experiment, root, file),
        facts=tuple(_facts(experiment, stacked, root, file)),
    )


def _refuse_foreign(path: Path, file: str) -> None:
    """Refuse another program's config: it names neither an environment nor a training command."""
    content = repo_configs.read(path)
    env = content.get("env")
    names_env = isinstance(env, dict) and "id" in env
    if path.is_file() and not names_env and not {"extends", "command"} & content.keys():
        hint = f'for your own training: rlx task new NAME --train "python train.py {file} --seed {{seed}} ..."'
        raise ConfigError(f"{file} is not an rlx config: it has no `env.id`", hint=hint)


def baseline_values(task: Task, root: Path) -> dict[str, Any]:
    """Return the baseline's config as plain data: the file with its bases, or the defaults of a command."""
    if task.adapter.config is None:
        return dict(task.adapter.defaults)
    data = layers.stack(root / task.adapter.config).document.data
    return {key: value for key, value in data.items() if key not in ("schema", "extends")}


def _inside(config: Path, root: Path) -> str:
    if str(config).startswith("catalog:"):
        raise UsageError(f"`{config}` is not a file of the project", hint="copy it into the project: rlx init")
    path = root / config
    if not path.exists():
        path = config.absolute()
    if not path.resolve().is_relative_to(root.resolve()):
        raise UsageError(f"`{config}` is outside the project", hint=f"a task's config is a file below {root}")
    return path.resolve().relative_to(root.resolve()).as_posix()


def _env(experiment: Experiment) -> str:
    changed = experiment.eval.env
    return (changed and changed.id) or experiment.env.id


def _surfaces(experiment: Experiment, root: Path, config: str) -> dict[Surface, PathsAndKeys]:
    named = [wrapper.name for wrapper in experiment.env.wrappers]
    reward_wrappers = [name for name in named if shapes_reward(name, root)]
    in_step = [region for name in named if name not in reward_wrappers for region in wrapper_regions(name, root)]
    reward_keys: tuple[str, ...] = ()
    env_keys: tuple[str, ...] = ("env.kwargs",)
    if reward_wrappers or in_step:
        reward_keys = ("env.wrappers",)
    else:
        env_keys = ("env.kwargs", "env.wrappers")
    own_rewards = (*reward_regions(experiment.env.id, root), *factory_wrappers(experiment.env.id, root))
    reward_paths = tuple(dict.fromkeys((*own_rewards, *_classes(reward_wrappers, root), *in_step)))
    arguments = experiment.env.kwargs
    staged = tuple(f"env.kwargs.{name}" for name in arguments if STAGED.search(name))
    randomised = tuple(f"env.kwargs.{name}" for name in arguments if RANDOMISED.search(name))
    surfaces: dict[Surface, PathsAndKeys] = {
        "hyperparameters": PathsAndKeys(keys=HYPERPARAMETERS),
        "reward": PathsAndKeys(paths=reward_paths, keys=reward_keys),
        "curriculum": PathsAndKeys(keys=staged),
        "randomisation": PathsAndKeys(keys=randomised),
        "env": PathsAndKeys(paths=_classes([experiment.env.id], root), keys=env_keys),
        "policy": PathsAndKeys(paths=_classes([experiment.policy.type, experiment.algo.name], root)),
        "evaluator": PathsAndKeys(paths=(config, *_evaluation_only(experiment, root)), keys=RLX_KEYS),
    }
    return {name: place for name, place in surfaces.items() if place.paths or place.keys}


def _classes(references: list[str], root: Path) -> tuple[str, ...]:
    parts = [file_and_name(reference, root) for reference in references]
    return tuple(f"{part[0]}{path_patterns.REGION}{part[1]}" for part in parts if part)


def _evaluation_only(experiment: Experiment, root: Path) -> tuple[str, ...]:
    """Return the file of the evaluation env, if it is not the training env's."""
    files_of_envs = [file_and_name(reference, root) for reference in (_env(experiment), experiment.env.id)]
    evaluation, training = (part and part[0] for part in files_of_envs)
    if evaluation is None or evaluation == training:
        return ()
    return (evaluation,)


def _facts(experiment: Experiment, stacked: Document, root: Path, config: str) -> Iterator[Fact]:
    yield fact("the config", config, root=root)
    for path, what in (
        (("env", "id"), f"env.id is {experiment.env.id}"),
        (("algo", "name"), f"algo.name is {experiment.algo.name}"),
        (("eval", "metric"), f"eval.metric is {experiment.eval.metric or 'return'}"),
    ):
        place = stacked.places.get(path)
        if place is None or place.line is None:
            continue
        source = Path(place.source)
        if source.is_file() and source.resolve().is_relative_to(root.resolve()):
            yield fact(what, source.resolve().relative_to(root.resolve()).as_posix(), root=root, line=place.line)
    for pattern in dict.fromkeys((*_classes([_env(experiment)], root), *reward_regions(experiment.env.id, root))):
        file, name = path_patterns.split(pattern)
        source_bytes = (root / file).read_bytes()
        if name and is_region(source_bytes, name):
            yield fact(f"region {name}", file, root=root, line=source_region.find(source_bytes, name).line)


def fact(what: str, file: str, *, root: Path, line: int = 1) -> Fact:
    """Return a fact about a file, with the file's present hash."""
    return Fact(what=what, file=file, line=line, sha256=files.sha256((root / file).read_bytes()))


@dataclass(frozen=True)
class Commands:
    """The user's description of a foreign repository; rlx looks for the rest in its entry file."""

    train: Argv
    eval: Argv = ()
    prefix: Argv = ()
    metrics: Source | None = None
    result: Source | None = None
    checkpoint: str = ""
    override: str | None = None
    steps: int | None = None
    python_path: tuple[str, ...] = ()
    cwd: str = ""
    local_sockets: bool = False
    env: str | None = None
    policy: str | None = None
    mission: str = ""
    surfaces: Mapping[Surface, PathsAndKeys] = field(default_factory=dict)


def task_from_commands(commands: Commands, *, root: Path, name: str) -> Task:
    """Draft a task for a foreign repository; `task.problems` lists the missing parts."""
    commands = _resolved(commands, root)
    bare = Adapter(kind="command", train=commands.train, eval=commands.eval, python_path=commands.python_path)
    entries = [file for file in entry_files(commands.train, bare, root) if (root / file).is_file()]
    scoring = [file for file in entry_files(commands.eval, bare, root) if (root / file).is_file()]
    options = options_of(entries, commands.train, root=root, folders=commands.python_path, override=commands.override)
    configs, values = _config_values(options.system, options.file, commands.train, root)
    in_command = {word[2:].partition("=")[0] for word in commands.train if word.startswith("--")}
    tunable = {
        key: option
        for key, option in options.known.items()
        if key not in in_command and not path_patterns.is_seed_key(key)
    }
    train = commands.train
    takes_overrides = "{overrides}" in " ".join(train)
    is_by_file = options.system in ("custom", "none") and takes_overrides
    if not is_by_file and options.system != "hydra":
        values = {}
    if not takes_overrides and (tunable or values):
        train = (*train, "{overrides}")
    config_system = options.system
    if values and is_by_file:
        config_system = "yaml"
    adapter = Adapter(
        kind="command",
        prefix=commands.prefix,
        train=train,
        eval=commands.eval,
        config_system=config_system,
        override=commands.override or OVERRIDES.get(options.system, "{key}={value}"),
        defaults={**{key: option.value for key, option in tunable.items()}, **values},
        steps=commands.steps,
        metrics=commands.metrics,
        result=commands.result,
        checkpoint=commands.checkpoint,
        python_path=commands.python_path,
        cwd=commands.cwd,
        local_sockets=commands.local_sockets,
        env=commands.env,
        policy=commands.policy,
    )
    given = dict(commands.surfaces)
    wrapped = wrappers_behind(entries, root, commands.python_path)
    if wrapped and "reward" not in given:
        given["reward"] = PathsAndKeys(paths=wrapped)
    surfaces = _command_surfaces(given, (*tunable, *values), scoring, has_config_file=bool(values))
    facts = [fact(TRAINS, file, root=root) for file in entries]
    config_fact = "what the training is told"
    sources = {*entries, *files_behind(entries, root=root, folders=commands.python_path)}
    if options.system == "hydra" and hydra_configs.is_whole(options.file, commands.train, root, sources=sources):
        config_fact = ALL_KEYS
    facts += [fact(config_fact, file, root=root) for file in configs]
    facts += [fact("what evaluates", file, root=root) for file in scoring]
    facts += [fact(f"default of {key}", options.file, root=root, line=option.line) for key, option in tunable.items()]
    card = Card(mission=commands.mission)
    return Task(name=name, card=card, adapter=adapter, surfaces=surfaces, facts=tuple(facts))


def _command_surfaces(
    given: Mapping[Surface, PathsAndKeys], keys: Sequence[str], scoring: Sequence[str], *, has_config_file: bool
) -> dict[Surface, PathsAndKeys]:
    """Sort the keys that no given surface covers into surfaces; the files that score are the evaluator's."""
    taken = [pattern for place in given.values() for pattern in place.keys]
    free = [key for key in keys if not any(path_patterns.covers_key(pattern, key) for pattern in taken)]
    subjects: dict[Surface, tuple[str, ...]] = {"hyperparameters": tuple(free)}
    if has_config_file:
        subjects = repo_configs.subjects(free)
    surfaces: dict[Surface, PathsAndKeys] = {}
    for subject, keys_of_subject in subjects.items():
        if keys_of_subject:
            surfaces[subject] = PathsAndKeys(keys=keys_of_subject)
    if scoring:
        surfaces["evaluator"] = PathsAndKeys(paths=tuple(scoring), keys=subjects.get("evaluator", ()))
    return {**surfaces, **given}


def _resolved(commands: Commands, root: Path) -> Commands:
    """Make explicit what a shell would decide: the interpreter behind `python`, and the import path."""
    train = commands.train
    scores = commands.eval
    if not commands.prefix or commands.prefix[0] == "env":  # other prefixes, such as `uv run`, choose the interpreter
        train = _with_interpreter(train, root)
        scores = _with_interpreter(scores, root)
    return replace(commands, train=train, eval=scores, python_path=commands.python_path or import_roots(root))


def _with_interpreter(words: Argv, root: Path) -> Argv:
    """Replace `python` of another virtual environment by its path: a job has no shell in which it is active."""
    if not words:
        return words
    program = root / words[0]
    if words[0] in ("python", "python3"):
        program = Path(shutil.which(words[0]) or "")
    if _venv_of(program) in (None, Path(sys.prefix)):
        return words
    return (str(program.absolute()), *words[1:])


def _venv_of(program: Path) -> Path | None:
    folder = program.absolute().parent.parent
    if not (folder / "pyvenv.cfg").is_file():
        return None
    return folder


def interpreter_folders(words: Argv) -> tuple[str, ...]:
    """Return the virtual environments of the programs that commands name, and the installations behind these."""
    venvs = [folder for word in words if word.startswith("/") and (folder := _venv_of(Path(word)))]
    outside = []
    for folder in venvs:
        for line in (folder / "pyvenv.cfg").read_text().splitlines():
            key, _, value = line.partition("=")
            installation = Path(value.strip()).parent
            if key.strip() == "home" and installation.is_dir() and not installation.is_relative_to("/usr"):
                outside.append(installation)
    return tuple(dict.fromkeys(map(str, (*venvs, *outside))))


def reread(task: Task, root: Path) -> Task:
    """Return a task with the present values of its training's config files."""
    adapter = task.adapter
    if adapter.config_system not in ("yaml", "hydra"):
        return task
    entries = entry_files(adapter.train, adapter, root)
    options = options_of(entries, adapter.train, root=root, folders=adapter.python_path)
    configs, values = _config_values(adapter.config_system, options.file, adapter.train, root)
    if not configs:
        return task
    return task.model_copy(update={"adapter": adapter.model_copy(update={"defaults": values})})


def _config_values(
    system: str, entry: str, train: Argv, root: Path
) -> tuple[tuple[str, ...], dict[str, repo_configs.Value]]:
    """Return the config files of a training, and the values of the keys that may be changed."""
    if system == "hydra":
        configs, values = hydra_configs.composed(entry, train, root)
    else:
        configs = repo_configs.config_files(train, root)
        values = repo_configs.values(configs, root)
    return configs, repo_configs.tunable(values, train)


_SOURCES = "jsonl:FILE, csv:FILE, tensorboard:FOLDER, stdout (name=value, name: value) or stdout:PATTERN"


def source_of(text: str, names: Mapping[str, str] | None = None) -> Source:
    """Parse `reader:place`: `tensorboard:{out}/tb`, `jsonl:{out}/metrics.jsonl`, `stdout:PATTERN`.

    `stdout` alone reads printed `name=value` and `name: value`. The name `step` maps to the source's name of a step.
    """
    reader, _, where = text.partition(":")
    if reader not in READERS or not (where or reader == "stdout"):
        raise UsageError(f"`{text}` is not a source", hint=_SOURCES)
    figures = dict(names or {})
    data = {"reader": reader, "step": figures.pop("step", "step"), "names": figures}
    if reader == "stdout":
        return Source.model_validate({**data, "pattern": where or None})
    return Source.model_validate({**data, "path": where})
