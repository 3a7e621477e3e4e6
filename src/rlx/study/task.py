"""A task: a problem in a repository, how it is trained and measured there, and which parts of it are what."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from rlx import files
from rlx.config import load
from rlx.config.schema import Count, Section, Source, Text
from rlx.config.yaml_lines import Sort
from rlx.errors import RlxError, did_you_mean
from rlx.study import document, patterns, region
from rlx.study.listing import files_in

SCHEMA: Literal[1] = 1
Name = Annotated[str, Field(strict=True, pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
Argv = tuple[Text, ...]
Surface = Literal["reward", "curriculum", "randomisation", "hyperparameters", "env", "evaluator", "policy"]
ReaderName = Literal["jsonl", "csv", "tensorboard", "stdout"]
READERS: tuple[ReaderName, ...] = ("jsonl", "csv", "tensorboard", "stdout")


class Card(Section):
    """What the task is about, in the words of the person who set it."""

    mission: Text = ""
    constraints: tuple[Text, ...] = ()
    non_goals: tuple[Text, ...] = ()


class Launcher(Section):
    """What carries jobs: this machine, or templates of a scheduler's own commands (`{command}` is the job's argv)."""

    executor: Literal["inline", "local", "custom"] = "local"
    submit: Argv = ()
    poll: Argv = ()
    cancel: Argv = ()


class Adapter(Section):
    """How the repository is driven: an rlx config, or commands of its own.

    Placeholders of the templates: `{seed}`, `{out}` (the job's folder), `{steps}`, `{overrides}` (every changed key by
    `override`), and for `eval` also `{checkpoint}`, `{episodes}`, `{episode_seed}`, `{result}` (the file to write).
    """

    kind: Literal["rlx", "command"]
    config: Text | None = None
    prefix: Argv = ()
    train: Argv = ()
    eval: Argv = ()
    config_system: Literal["rlx", "hydra", "argparse", "tyro", "yaml", "gin", "dataclasses", "custom", "none"] = "none"
    override: Text = "{key}={value}"
    defaults: dict[str, Text | int | float | bool | list[Any] | None] = Field(default_factory=dict)
    steps: Count | None = None
    metrics: Source | None = None
    result: Source | None = None
    checkpoint: Text = ""
    artifacts: tuple[Text, ...] = ()
    python_path: tuple[Text, ...] = (".",)
    env: Text | None = None
    policy: Text | None = None
    policy_files: tuple[Text, ...] = ()
    launcher: Launcher = Launcher()

    @property
    def takes_steps(self) -> bool:
        """Whether a training can be told to be shorter."""
        return self.kind == "rlx" or any("{steps}" in word for word in self.train)


class Place(Section):
    """A part of the repository: paths (globs, or regions as `file.py::Class.method`) and config keys (`algo.*`)."""

    paths: tuple[Text, ...] = ()
    keys: tuple[Text, ...] = ()


TRAINS = "what trains"
"""What the fact about the program that trains is called."""


TOLD_WHOLE = "all that the training is told"
"""What the facts about configs are called that have every key there is."""


class Fact(Section):
    """Something read from a file; it is stale where the file's hash is another."""

    what: Text
    file: Text
    line: Count
    sha256: Text


class Task(Section):
    """A task as `task.yaml` holds it."""

    schema_: Literal[1] = Field(SCHEMA, alias="schema")
    name: Name
    card: Card = Card()
    adapter: Adapter
    surfaces: dict[Surface, Place] = Field(default_factory=dict)
    facts: tuple[Fact, ...] = ()


SORT = Sort("task", "make one: rlx task new")
FILE = "task.yaml"
TRAIN_PLACEHOLDERS = ("seed", "out", "steps", "overrides")
EVAL_PLACEHOLDERS = (*TRAIN_PLACEHOLDERS, "checkpoint", "episodes", "episode_seed", "result")
PLACEHOLDERS: dict[str, tuple[str, ...]] = {
    "train": TRAIN_PLACEHOLDERS,
    "eval": EVAL_PLACEHOLDERS,
    "override": ("key", "value"),
    "submit": ("command", "script", "name", "out", "log", "cores", "gpus", "memory_gb", "minutes"),
    "poll": ("id", "name"),
    "cancel": ("id", "name"),
}
"""What each template may name in braces."""
COMMENTS = {
    "card": "What the task is about, in your words.",
    "card.mission": "one sentence: what should get better",
    "card.constraints": "what must stay true",
    "card.non_goals": "what is not asked for",
    "adapter": "How the repository is driven.",
    "adapter.kind": "rlx: a config of rlx; command: its own programs",
    "adapter.prefix": "goes before train and eval, e.g. [uv, run]",
    "adapter.train": "{seed} {out} (the job's folder) {steps} {overrides}",
    "adapter.eval": "also {checkpoint} {episodes} {episode_seed} {result}",
    "adapter.override": "how one changed key is written in {overrides}",
    "adapter.defaults": "values of keys as they are now: what a change is measured against",
    "adapter.metrics": "where training writes its figures",
    "adapter.result": "where eval writes its figures",
    "adapter.checkpoint": "what training leaves behind; kept as an opaque file with its hash",
    "adapter.python_path": "folders of the repository that its imports start from",
    "adapter.env": "with `policy`: rlx plays this environment itself (sealed evaluation)",
    "adapter.policy": "`file.py:function` that loads a checkpoint and returns what acts",
    "adapter.launcher": "what carries jobs: this machine, or a scheduler's own commands",
    "surfaces": "Which paths, regions (file.py::Class.method) and config keys are what; a scope names these.",
    "facts": "What the above was read from; a file with another hash makes its fact stale.",
}


def read(path: Path) -> Task:
    """Read a task; every problem with file and line."""
    return document.read(path, Task, sort=SORT)


def dump(task: Task) -> str:
    """Return the task as YAML with comments, for people to edit; what is at its default is left out of the adapter."""
    data = task.model_dump(mode="json", by_alias=True, exclude={"adapter"})
    adapter = task.adapter.model_dump(mode="json", exclude_defaults=True)
    ordered = {key: data[key] for key in ("schema", "name", "card")} | {"adapter": adapter}
    surfaces = {name: {key: value for key, value in place.items() if value} for name, place in data["surfaces"].items()}
    return document.dump(
        {**ordered, "surfaces": surfaces, "facts": data["facts"]}, comments=COMMENTS, head=f"Task {task.name}."
    )


def sha256(task: Task) -> str:
    """Return the hash of what a task says, however it is written down: what a contract is for."""
    said = task.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return files.sha256(json.dumps(said, sort_keys=True).encode())


def placeholders(text: str) -> tuple[str, ...]:
    """Return the names in braces of a template; other braces are text."""
    return tuple(re.findall(r"\{([A-Za-z_][A-Za-z0-9_]*)\}", text))


def fill(text: str, values: Mapping[str, str]) -> str:
    """Put values in the place of `{name}`; what has no value stays as it is."""
    return re.sub(r"\{([A-Za-z_][A-Za-z0-9_]*)\}", lambda found: values.get(found[1], found[0]), text)


def problems(task: Task, root: Path) -> tuple[str, ...]:
    """Return all that is wrong with a task in this repository; stale facts with file, line and hash."""
    return (
        *stale(task, root),
        *_kind_problems(task, root),
        *_template_problems(task.adapter),
        *_source_problems(task.adapter),
        *_file_problems(task.adapter, root),
        *_surface_problems(task, root),
    )


def stale(task: Task, root: Path) -> Iterator[str]:
    """Name every fact whose file is another now, or gone."""
    for fact in task.facts:
        now = _digest(root, fact.file)
        if now is None:
            yield f"{fact.file}:{fact.line}: {fact.what}: the file is gone (it was {fact.sha256[:12]})"
        elif now != fact.sha256:
            yield f"{fact.file}:{fact.line}: {fact.what}: the file is another now ({fact.sha256[:12]} → {now[:12]})"


def _digest(root: Path, file: str) -> str | None:
    if patterns.path_problem(file) is not None:
        return None
    try:
        return files.sha256((root / file).read_bytes())
    except OSError:
        return None


def _kind_problems(task: Task, root: Path) -> Iterator[str]:
    adapter = task.adapter
    if adapter.kind == "rlx":
        given = [name for name in ("train", "eval", "prefix", "result", "metrics") if getattr(adapter, name)]
        if given:
            yield f"adapter.{given[0]}: an adapter of kind rlx is driven by its config and has no `{given[0]}`"
        yield from _config_problems(adapter.config, root)
        return
    if adapter.config is not None:
        yield "adapter.config: an adapter of kind command has no rlx config; name its files in train and eval"
    if not adapter.train:
        yield "adapter.train: the command that trains is missing"
    if (adapter.env is None) != (adapter.policy is None):
        yield "adapter.env: a sealed evaluation needs both `env` and `policy`"
    if (adapter.eval or adapter.env) and not adapter.checkpoint:
        yield "adapter.checkpoint: what training leaves behind for the evaluation is missing"


def _config_problems(config: str | None, root: Path) -> Iterator[str]:
    if config is None:
        yield "adapter.config: the config is missing"
    elif (problem := patterns.path_problem(config)) is not None:
        yield f"adapter.config: `{config}` {problem}"
    else:
        try:
            load.read(root / config)
        except RlxError as error:
            yield f"adapter.config: {error.message}"


def _template_problems(adapter: Adapter) -> Iterator[str]:
    templates = {"train": adapter.train, "eval": adapter.eval, "override": (adapter.override,)}
    carriers = {name: getattr(adapter.launcher, name) for name in ("submit", "poll", "cancel")}
    for where, words in (templates | carriers).items():
        for name in (name for word in words for name in placeholders(word)):
            if name not in PLACEHOLDERS[where]:
                yield f"adapter.{where}: unknown placeholder `{{{name}}}`; {_meant(name, PLACEHOLDERS[where])}"
    if adapter.train and "seed" not in _named(adapter.train):
        yield "adapter.train: no {seed}: all seeds would be one training"
    if any("overrides" in placeholders(word) and word != "{overrides}" for word in adapter.train):
        shell = "bash -c '... \"$@\"' train {overrides}"
        yield f"adapter.train: {{overrides}} must be an argument of its own; for a shell: {shell}"
    if adapter.eval:
        for name, why in (("checkpoint", "which policy to score"), ("episode_seed", "which episodes to play")):
            if name not in _named(adapter.eval):
                yield f"adapter.eval: no {{{name}}}: it could not be told {why}"
    if adapter.override and not {"key", "value"} <= set(placeholders(adapter.override)):
        yield "adapter.override: needs {key} and {value}"
    yield from _launcher_problems(adapter.launcher)


def _launcher_problems(launcher: Launcher) -> Iterator[str]:
    if launcher.executor != "custom":
        if launcher.submit or launcher.poll or launcher.cancel:
            yield f"adapter.launcher: submit, poll and cancel are for executor custom, not {launcher.executor}"
        return
    for name, words in (("submit", launcher.submit), ("poll", launcher.poll), ("cancel", launcher.cancel)):
        if not words:
            yield f"adapter.launcher.{name}: executor custom needs it"
    if launcher.submit and not _named(launcher.submit) & {"command", "script"}:
        yield "adapter.launcher.submit: no {command} and no {script}: it would submit nothing"


def _named(words: Argv) -> set[str]:
    return {name for word in words for name in placeholders(word)}


def _meant(word: str, known: tuple[str, ...]) -> str:
    near = did_you_mean(word, known)
    return f"did you mean `{{{near}}}`?" if near else f"there are: {', '.join(f'{{{name}}}' for name in known)}"


def _source_problems(adapter: Adapter) -> Iterator[str]:
    if adapter.kind == "command" and adapter.metrics is None:
        yield "adapter.metrics: where training writes its figures is missing"
    if adapter.eval and adapter.result is None:
        yield "adapter.result: where eval writes its figures is missing"
    for where, source in (("metrics", adapter.metrics), ("result", adapter.result)):
        if source is not None:
            yield from (f"adapter.{where}.{problem}" for problem in _source(source))
    reads_result = adapter.result is not None and "result" in placeholders(adapter.result.path)
    if reads_result and adapter.eval and "result" not in _named(adapter.eval):
        yield "adapter.eval: no {result}, but adapter.result is read from there"


def _source(source: Source) -> Iterator[str]:
    if source.reader == "stdout":
        yield from _pattern_problems(source.pattern) if source.pattern is not None else ()
        return
    if source.pattern is not None:
        yield f"pattern: is for reader stdout, not {source.reader}"
    if not source.path:
        yield f"path: reader {source.reader} needs the file"
    for name in placeholders(source.path):
        if name not in ("out", "seed", "result"):
            yield f"path: unknown placeholder `{{{name}}}`; {_meant(name, ('out', 'seed', 'result'))}"
    if ".." in Path(source.path).parts or source.path.startswith(("/", "~")):
        yield f"path: `{source.path}` leaves the job's folder; start it with {{out}}"


def _pattern_problems(pattern: str) -> Iterator[str]:
    try:
        if not re.compile(pattern).groupindex:
            yield "pattern: has no named group `(?P<name>…)`"
    except re.error as error:
        yield f"pattern: is no regular expression ({error})"


def entry_files(words: Argv, adapter: Adapter, root: Path) -> tuple[str, ...]:
    """Return the files of the repository that a command names: scripts, and what `-m module` means."""
    found = [word for word in words if _looks_like_file(word)]
    modules = [after for word, after in pairwise(words) if word == "-m"]
    for module in modules:
        tails = (f"{module.replace('.', '/')}.py", f"{module.replace('.', '/')}/__main__.py")
        places = [Path(folder, tail) for folder in adapter.python_path for tail in tails]
        found += [place.as_posix() for place in places if (root / place).is_file()]
    return tuple(dict.fromkeys(file.removeprefix("./") for file in found))


def _looks_like_file(word: str) -> bool:
    return word.endswith((".py", ".sh")) and not placeholders(word) and not word.startswith(("/", "-", "~"))


def _file_problems(adapter: Adapter, root: Path) -> Iterator[str]:
    for where in ("prefix", "train", "eval"):
        for file in entry_files(getattr(adapter, where), adapter, root):
            if not (root / file).is_file():
                yield f"adapter.{where}: no file `{file}` in the repository"
    for folder in adapter.python_path:
        if not (root / folder).is_dir() or ".." in Path(folder).parts or Path(folder).is_absolute():
            yield f"adapter.python_path: `{folder}` is no folder of the repository"
    for where, reference in (("env", adapter.env), ("policy", adapter.policy)):
        file = (reference or "").rpartition(":")[0]
        if file.endswith(".py") and not (root / file).is_file():
            yield f"adapter.{where}: no file `{file}` in the repository"
    for file in adapter.policy_files:
        if not patterns.is_glob(file) and not (root / file).exists():
            yield f"adapter.policy_files: no file `{file}` in the repository"


def _surface_problems(task: Task, root: Path) -> Iterator[str]:
    for name, place in task.surfaces.items():
        for pattern in place.paths:
            if (problem := place_problem(pattern, root)) is not None:
                yield f"surfaces.{name}: `{pattern}` {problem}"


def place_problem(pattern: str, root: Path) -> str | None:
    """Say what is wrong with a path or region in this repository: not there, or not to be named like that."""
    problem = patterns.path_problem(pattern)
    if problem is not None:
        return problem
    path, name = patterns.split(pattern)
    if patterns.is_glob(path):
        return None if any(patterns.covers_path(path, file) for file in files_in(root)) else "matches no file"
    if name is None:
        return None if (root / path).exists() else "is not there"
    try:
        region.find((root / path).read_bytes(), name)
    except OSError:
        return "is in a file that is not there"
    except ValueError as error:
        return f"is no region: {path} {error}"
    return None


def regions(path: str, root: Path) -> tuple[str, ...]:
    """Return the functions and classes of a file as regions; none where it is no Python."""
    try:
        names = region.names((root / path).read_bytes()) if path.endswith(".py") else []
    except (OSError, ValueError):
        return ()
    return tuple(f"{path}{patterns.REGION}{name}" for name in names if "." not in name)


def place_meant(pattern: str, root: Path) -> str | None:
    """Return the path or region that one that is not there is close to."""
    path, name = patterns.split(pattern)
    if name is None or not (root / path).is_file():
        near = did_you_mean(path, files_in(root))
        return near and (f"{near}{patterns.REGION}{name}" if name else near)
    try:
        near = did_you_mean(name, region.names((root / path).read_bytes()))
    except ValueError:
        return None
    return f"{path}{patterns.REGION}{near}" if near else None
