"""Tasks that need not be written: everything from an rlx config, a draft from the commands of a foreign repository."""

from __future__ import annotations

import ast
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlx import files
from rlx.config import layers, load
from rlx.config.schema import Experiment, Source, Wrapper
from rlx.config.yaml_lines import Document
from rlx.diagnose.reward_code import reward_functions
from rlx.errors import ConfigError, NotFound, UsageError
from rlx.evaluate.sources import files_behind
from rlx.study import foreign, hydra, patterns
from rlx.study import region as regions
from rlx.study.evaluator import RLX_KEYS, shapes_reward
from rlx.study.options import options_of
from rlx.study.task import READERS, TOLD_WHOLE, TRAINS, Adapter, Argv, Card, Fact, Place, Surface, Task, entry_files

HYPERPARAMETERS = ("algo.*", "policy.*", "env.normalize.*", "env.num_envs")
RANDOMISED = re.compile(r"random|noise|friction|mass|perturb|delay|latency|push", re.I)
STAGED = re.compile(r"difficulty|level|curriculum|stage", re.I)
OVERRIDES = {"hydra": "{key}={value}", "argparse": "--{key}={value}", "tyro": "--{key}={value}"}


def task_of(config: Path, *, root: Path, name: str, mission: str = "") -> Task:
    """Derive a task from an rlx config of the project: surfaces, and facts with file, line and hash."""
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
    """Refuse a config of some other program: one that says neither which environment it is for nor what trains."""
    said = foreign.read(path)
    env = said.get("env")
    if path.is_file() and not (isinstance(env, dict) and "id" in env) and not {"extends", "command"} & said.keys():
        hint = (
            f'it is for a training of its own? rlx task new NAME --train "python train.py {file} --seed {{seed}} ..."'
        )
        raise ConfigError(f"{file} is no rlx config: it has no `env.id`", hint=hint)


def base_of(task: Task, root: Path) -> dict[str, Any]:
    """Return the baseline's config as plain data: the file with what it extends, or the defaults of a command."""
    if task.adapter.config is None:
        return dict(task.adapter.defaults)
    data = layers.stack(root / task.adapter.config).document.data
    return {key: value for key, value in data.items() if key not in ("schema", "extends")}


def _inside(config: Path, root: Path) -> str:
    if str(config).startswith("catalog:"):
        raise UsageError(f"`{config}` is not a file of the project", hint="copy it into the project: rlx init")
    path = config if config.is_absolute() else root / config
    path = path if path.exists() else config.absolute()
    if not path.resolve().is_relative_to(root.resolve()):
        raise UsageError(f"`{config}` lies outside the project", hint=f"a task's config is a file below {root}")
    return path.resolve().relative_to(root.resolve()).as_posix()


def _env(experiment: Experiment) -> str:
    own = experiment.eval.env
    return own.id if own and own.id else experiment.env.id


def _surfaces(experiment: Experiment, root: Path, config: str) -> dict[Surface, Place]:
    rewarding = [one for one in experiment.env.wrappers if shapes_reward(one.name, root)]
    arguments = {name: f"env.kwargs.{name}" for name in experiment.env.kwargs}
    found: dict[Surface, Place] = {
        "hyperparameters": Place(keys=HYPERPARAMETERS),
        "reward": Place(
            paths=(*_reward_regions(experiment.env.id, root), *_classes(rewarding, root)),
            keys=("env.wrappers",) if rewarding else (),
        ),
        "curriculum": Place(keys=tuple(key for name, key in arguments.items() if STAGED.search(name))),
        "randomisation": Place(keys=tuple(key for name, key in arguments.items() if RANDOMISED.search(name))),
        "env": Place(
            paths=_classes([Wrapper(name=experiment.env.id)], root),
            keys=("env.kwargs", *(() if rewarding else ("env.wrappers",))),
        ),
        "policy": Place(
            paths=_classes([Wrapper(name=experiment.policy.type), Wrapper(name=experiment.algo.name)], root)
        ),
        "evaluator": Place(paths=(config, *_evaluation_only(experiment, root)), keys=RLX_KEYS),
    }
    return {name: place for name, place in found.items() if place.paths or place.keys}


def _file_and_name(reference: str, root: Path) -> tuple[str, str] | None:
    """Return the parts of `path/file.py:Class` where that is a file of the project."""
    file, _, name = reference.rpartition(":")
    is_own = file.endswith(".py") and patterns.path_problem(file) is None and (root / file).is_file()
    return (file.removeprefix("./"), name) if is_own and name.isidentifier() else None


def _classes(wrappers: list[Wrapper], root: Path) -> tuple[str, ...]:
    found = [_file_and_name(one.name, root) for one in wrappers]
    return tuple(f"{one[0]}{patterns.REGION}{one[1]}" for one in found if one)


def _evaluation_only(experiment: Experiment, root: Path) -> tuple[str, ...]:
    """Return the file of an evaluation env that is not the training env's."""
    own = _file_and_name(_env(experiment), root)
    training = _file_and_name(experiment.env.id, root)
    return (own[0],) if own and (training is None or own[0] != training[0]) else ()


def _reward_regions(env_id: str, root: Path) -> tuple[str, ...]:
    """Return the regions that make the reward of an env in a project file; its `step` only where nothing else does."""
    found = _file_and_name(env_id, root)
    if found is None:
        return ()
    file, name = found
    functions = _rewards(root / file, name, place=file)
    named = [f"{file}{patterns.REGION}{one}" for one in functions if one.rpartition(".")[2] != "step"]
    own = [f"{file}{patterns.REGION}{one}" for one in functions]
    return tuple(one for one in [*named, *_imported_rewards(file, root)] or own if _is_there(one, root))


def _rewards(path: Path, name: str | None, *, place: str) -> list[str]:
    try:
        return [one.name for one in reward_functions(ast.parse(path.read_bytes()), name, place=place)]
    except (NotFound, ConfigError, SyntaxError, ValueError, OSError):
        return []


def _imported_rewards(file: str, root: Path) -> list[str]:
    """Return what of other project files makes an env's reward: files that are named so, else functions by name."""
    behind = files_behind([file], root=root, folders=_import_roots(root))
    found = [one for one in behind if one != file and "reward" in Path(one).stem.lower()]
    if found:
        return found
    for node in ast.walk(ast.parse((root / file).read_bytes())):
        if not isinstance(node, ast.ImportFrom) or not node.module or node.level:
            continue
        for base in (root, (root / file).parent):
            path = base / f"{node.module.replace('.', '/')}.py"
            if path.is_file():
                place = path.relative_to(root).as_posix()
                made = set(_rewards(path, None, place=place))
                found += [f"{place}{patterns.REGION}{one.name}" for one in node.names if one.name in made]
                break
    return found


def _is_there(pattern: str, root: Path) -> bool:
    file, name = patterns.split(pattern)
    return name is None or _is_region((root / file).read_bytes(), name)


def _is_region(source: bytes, name: str) -> bool:
    try:
        regions.find(source, name)
    except ValueError:
        return False
    return True


def _facts(experiment: Experiment, stacked: Document, root: Path, config: str) -> Iterator[Fact]:
    yield fact("the config", config, root=root)
    for path, what in (
        (("env", "id"), f"env.id is {experiment.env.id}"),
        (("algo", "name"), f"algo.name is {experiment.algo.name}"),
        (("eval", "metric"), f"eval.metric is {experiment.eval.metric or 'return'}"),
    ):
        place = stacked.places.get(path)
        source = Path(place.source) if place else Path()
        if place and place.line and source.is_file() and source.resolve().is_relative_to(root.resolve()):
            yield fact(what, source.resolve().relative_to(root.resolve()).as_posix(), root=root, line=place.line)
    for pattern in dict.fromkeys(
        (*_classes([Wrapper(name=_env(experiment))], root), *_reward_regions(experiment.env.id, root))
    ):
        file, name = patterns.split(pattern)
        source_bytes = (root / file).read_bytes()
        if name and _is_region(source_bytes, name):
            yield fact(f"region {name}", file, root=root, line=regions.find(source_bytes, name).line)


def fact(what: str, file: str, *, root: Path, line: int = 1) -> Fact:
    """Return something read from a file, with the file's hash as it is now."""
    return Fact(what=what, file=file, line=line, sha256=files.sha256((root / file).read_bytes()))


@dataclass(frozen=True)
class Commands:
    """What a person says about a foreign repository; what is left open is looked for in its entry file."""

    train: Argv
    eval: Argv = ()
    prefix: Argv = ()
    metrics: Source | None = None
    result: Source | None = None
    checkpoint: str = ""
    override: str | None = None
    steps: int | None = None
    python_path: tuple[str, ...] = ()
    env: str | None = None
    policy: str | None = None
    mission: str = ""
    surfaces: Mapping[Surface, Place] = field(default_factory=dict)


def task_from_commands(commands: Commands, *, root: Path, name: str) -> Task:
    """Draft a task for a foreign repository; `task.problems` names what is still missing."""
    commands = _resolved(commands, root)
    bare = Adapter(kind="command", train=commands.train, eval=commands.eval, python_path=commands.python_path)
    entries = [file for file in entry_files(commands.train, bare, root) if (root / file).is_file()]
    scoring = [file for file in entry_files(commands.eval, bare, root) if (root / file).is_file()]
    options = options_of(entries, commands.train, root=root, folders=commands.python_path, override=commands.override)
    configs, told = _told(options.system, options.file, commands.train, root)
    filled = {word[2:].partition("=")[0] for word in commands.train if word.startswith("--")}
    tunable = {key: one for key, one in options.known.items() if key not in filled and not patterns.is_seed_key(key)}
    is_told = "{overrides}" in " ".join(commands.train)
    is_by_file = options.system in ("custom", "none") and is_told
    written = told if is_by_file or options.system == "hydra" else {}
    override = commands.override or OVERRIDES.get(options.system, "{key}={value}")
    adapter = Adapter(
        kind="command",
        prefix=commands.prefix,
        train=commands.train if is_told or not (tunable or written) else (*commands.train, "{overrides}"),
        eval=commands.eval,
        config_system="yaml" if written and is_by_file else options.system,
        override=override,
        defaults={**{key: option.value for key, option in tunable.items()}, **written},
        steps=commands.steps,
        metrics=commands.metrics,
        result=commands.result,
        checkpoint=commands.checkpoint,
        python_path=commands.python_path,
        env=commands.env,
        policy=commands.policy,
    )
    surfaces: dict[Surface, Place] = dict(commands.surfaces)
    taken = [pattern for place in surfaces.values() for pattern in place.keys]
    free = [key for key in (*tunable, *written) if not any(patterns.covers_key(one, key) for one in taken)]
    about: dict[Surface, tuple[str, ...]] = foreign.subjects(free) if written else {"hyperparameters": tuple(free)}
    found: dict[Surface, Place] = {name: Place(keys=keys) for name, keys in about.items() if keys}
    if scoring:
        found["evaluator"] = Place(paths=tuple(scoring), keys=about.get("evaluator", ()))
    surfaces = {**found, **surfaces}
    facts = [fact(TRAINS, file, root=root) for file in entries]
    sources = {*entries, *files_behind(entries, root=root, folders=commands.python_path)}
    is_whole = options.system == "hydra" and hydra.is_whole(options.file, commands.train, root, sources=sources)
    facts += [fact(TOLD_WHOLE if is_whole else "what the training is told", file, root=root) for file in configs]
    facts += [fact("what evaluates", file, root=root) for file in scoring]
    facts += [fact(f"default of {key}", options.file, root=root, line=one.line) for key, one in tunable.items()]
    card = Card(mission=commands.mission)
    return Task(name=name, card=card, adapter=adapter, surfaces=surfaces, facts=tuple(facts))


def _resolved(commands: Commands, root: Path) -> Commands:
    """Say what is left to the shell: the interpreter that `python` is there, and where imports start from."""
    is_own = not commands.prefix or commands.prefix[0] == "env"  # others, such as `uv run`, choose it themselves
    train, scores = (_interpreted(words, root) if is_own else words for words in (commands.train, commands.eval))
    return replace(commands, train=train, eval=scores, python_path=commands.python_path or _import_roots(root))


def _interpreted(words: Argv, root: Path) -> Argv:
    """Name the interpreter of another virtual environment by its path: a job has no shell that it is active in."""
    if not words:
        return words
    here = root / words[0]
    found = Path(shutil.which(words[0]) or "") if words[0] in ("python", "python3") else here
    is_other = _venv_of(found) not in (None, Path(sys.prefix))
    return (str(found.absolute()), *words[1:]) if is_other else words


def _venv_of(program: Path) -> Path | None:
    folder = program.absolute().parent.parent
    return folder if (folder / "pyvenv.cfg").is_file() else None


def venvs(words: Argv) -> tuple[str, ...]:
    """Return the virtual environments that commands name a program of, and the installations these are made from."""
    found = [folder for word in words if word.startswith("/") and (folder := _venv_of(Path(word)))]
    homes = [
        Path(line.partition("=")[2].strip()).parent
        for folder in found
        for line in (folder / "pyvenv.cfg").read_text().splitlines()
        if line.partition("=")[0].strip() == "home"
    ]
    outside = [folder for folder in homes if folder.is_dir() and not folder.is_relative_to("/usr")]
    return tuple(dict.fromkeys(map(str, (*found, *outside))))


def _import_roots(root: Path) -> tuple[str, ...]:
    """Return where imports start from as far as the layout tells: the top, and a `src` that holds packages."""
    has_packages = any((root / "src").glob("*/__init__.py")) and not (root / "src" / "__init__.py").is_file()
    return ("src", ".") if has_packages else (".",)


def told_anew(task: Task, root: Path) -> Task:
    """Return a task with the values that its training's config files have now."""
    adapter = task.adapter
    if adapter.config_system not in ("yaml", "hydra"):
        return task
    entries = entry_files(adapter.train, adapter, root)
    options = options_of(entries, adapter.train, root=root, folders=adapter.python_path)
    configs, told = _told(adapter.config_system, options.file, adapter.train, root)
    return task.model_copy(update={"adapter": adapter.model_copy(update={"defaults": told})}) if configs else task


def _told(system: str, entry: str, train: Argv, root: Path) -> tuple[tuple[str, ...], dict[str, foreign.Value]]:
    """Return the config files of a training, and the values of the keys that may be changed."""
    if system == "hydra":
        configs, found = hydra.composed(entry, train, root)
    else:
        configs = foreign.config_files(train, root)
        found = foreign.values(configs, root)
    return configs, foreign.tunable(found, train)


_SOURCES = "jsonl:FILE, csv:FILE, tensorboard:FOLDER, stdout (name=value, name: value) or stdout:PATTERN"


def source_of(text: str, names: Mapping[str, str] | None = None) -> Source:
    """Read `reader:where` as it is typed: `tensorboard:{out}/tb`, `jsonl:{out}/metrics.jsonl`, `stdout:PATTERN`.

    `stdout` alone reads what is printed as `name=value` or `name: value`. Of the names, `step` is what the source calls
    a step.
    """
    reader, _, where = text.partition(":")
    if reader not in READERS or not (where or reader == "stdout"):
        raise UsageError(f"`{text}` is no source", hint=_SOURCES)
    figures = dict(names or {})
    data = {"reader": reader, "step": figures.pop("step", "step"), "names": figures}
    return Source.model_validate({**data, **({"pattern": where or None} if reader == "stdout" else {"path": where})})
