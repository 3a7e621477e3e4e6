"""A task: a problem in a repository, the commands that train and measure it, and its surfaces."""

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
from rlx.config.yaml_lines import FileKind
from rlx.errors import RlxError, did_you_mean, hint_for
from rlx.study.candidate import path_patterns, source_region
from rlx.study.contract import document
from rlx.study.task.repo_files import files_in

SCHEMA: Literal[1] = 1
Name = Annotated[str, Field(strict=True, pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
Argv = tuple[Text, ...]
Surface = Literal["reward", "curriculum", "randomisation", "hyperparameters", "env", "evaluator", "policy"]
ReaderName = Literal["jsonl", "csv", "tensorboard", "stdout"]
READERS: tuple[ReaderName, ...] = ("jsonl", "csv", "tensorboard", "stdout")


class Card(Section):
    """The mission of the task, in the words of the person who set it."""

    mission: Text = ""
    constraints: tuple[Text, ...] = ()
    non_goals: tuple[Text, ...] = ()


class Launcher(Section):
    """How jobs start: on this machine, or by templates of a scheduler's commands (`{command}` is the job's argv)."""

    executor: Literal["inline", "local", "custom", "slurm", "ray"] = "local"
    submit: Argv = ()
    poll: Argv = ()
    cancel: Argv = ()


class Adapter(Section):
    """How rlx trains and evaluates in the repository: by an rlx config, or by the repository's own commands.

    Placeholders of the templates: `{seed}`, `{out}` (the job's folder), `{steps}`, `{overrides}` (every changed key in
    the form of `override`), and for `eval` also `{checkpoint}`, `{episodes}`, `{episode_seed}`, `{result}` (the file
    to write).
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
    cwd: Text = ""
    local_sockets: bool = False
    env: Text | None = None
    policy: Text | None = None
    policy_files: tuple[Text, ...] = ()
    launcher: Launcher = Launcher()

    @property
    def takes_steps(self) -> bool:
        """Whether the length of a training can be set."""
        return self.kind == "rlx" or any("{steps}" in word for word in self.train)

    @property
    def takes_episodes(self) -> bool:
        """Whether the eval command gets the number of episodes."""
        return any("{episodes}" in word for word in self.eval)

    @property
    def takes_episode_seed(self) -> bool:
        """Whether the eval command gets the seed of its episodes."""
        return any("{episode_seed}" in word for word in self.eval)


class PathsAndKeys(Section):
    """A part of the repository: paths (globs, or regions as `file.py::Class.method`) and config keys (`algo.*`)."""

    paths: tuple[Text, ...] = ()
    keys: tuple[Text, ...] = ()


TRAINS = "what trains"
"""The `what` of the fact about the training program; it is stored in `task.yaml`."""
ALL_KEYS = "all that the training is told"
"""The `what` of facts about configs that list every key; it is stored in `task.yaml`."""


class Fact(Section):
    """A fact that was read from a file; it is stale if the file's hash has changed."""

    what: Text
    file: Text
    line: Count
    sha256: Text


class Task(Section):
    """The content of `task.yaml`."""

    schema_: Literal[1] = Field(SCHEMA, alias="schema")
    name: Name
    card: Card = Card()
    adapter: Adapter
    surfaces: dict[Surface, PathsAndKeys] = Field(default_factory=dict)
    facts: tuple[Fact, ...] = ()


FILE_KIND = FileKind("task", "make one: rlx task new")
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
"""The placeholders that each template may use."""
COMMENTS = {
    "card": "The mission of the task, in your words.",
    "card.mission": "one sentence: what should improve",
    "card.constraints": "what must stay true",
    "card.non_goals": "what is not asked for",
    "adapter": "How rlx trains and evaluates in the repository.",
    "adapter.kind": "rlx: an rlx config; command: the repository's own programs",
    "adapter.prefix": "words before train and eval, for example [uv, run]",
    "adapter.train": "{seed} {out} (the job's folder) {steps} {overrides}",
    "adapter.eval": "also {checkpoint} {episodes} {episode_seed} {result}",
    "adapter.override": "how one changed key is written in {overrides}",
    "adapter.defaults": "the present values of keys, which a change is compared with",
    "adapter.metrics": "where training writes its metrics",
    "adapter.result": "where eval writes its metrics",
    "adapter.checkpoint": "the file or folder that training writes; stored with its hash, never opened",
    "adapter.python_path": "folders of the repository on the import path",
    "adapter.cwd": "where train runs: {out}/work is a writable folder with links to the repository",
    "adapter.local_sockets": "sockets between the program's own processes, for torchrun and SubprocVecEnv; no network",
    "adapter.env": "with `policy`: rlx plays this environment itself (sealed evaluation)",
    "adapter.policy": "`file.py:function` that loads a checkpoint and returns a policy",
    "adapter.launcher": "how jobs are started: on this machine, or by a scheduler's commands",
    "surfaces": "The paths, regions (file.py::Class.method) and config keys of each part; a scope names these.",
    "facts": "The files behind the above; a changed file makes its fact stale.",
}


def read(path: Path, *, kind: FileKind = FILE_KIND) -> Task:
    """Read a task; every problem has a file and a line."""
    return document.read(path, Task, kind=kind)


def dump(task: Task) -> str:
    """Return the task as YAML with comments, for people to edit; the adapter's defaults are left out."""
    data = task.model_dump(mode="json", by_alias=True, exclude={"adapter"})
    adapter = task.adapter.model_dump(mode="json", exclude_defaults=True)
    ordered = {key: data[key] for key in ("schema", "name", "card")} | {"adapter": adapter}
    surfaces = {name: {key: value for key, value in place.items() if value} for name, place in data["surfaces"].items()}
    return document.dump(
        {**ordered, "surfaces": surfaces, "facts": data["facts"]}, comments=COMMENTS, head=f"Task {task.name}."
    )


def sha256(task: Task) -> str:
    """Return the hash of a task's content, independent of its formatting; a contract refers to it."""
    content = task.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return files.sha256(json.dumps(content, sort_keys=True).encode())


def placeholders(text: str) -> tuple[str, ...]:
    """Return the placeholder names of a template; other braces are text."""
    return tuple(re.findall(r"\{([A-Za-z_][A-Za-z0-9_]*)\}", text))


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace `{name}` by its value; a placeholder without a value stays."""
    return re.sub(r"\{([A-Za-z_][A-Za-z0-9_]*)\}", lambda match: values.get(match[1], match[0]), text)


def problems(task: Task, root: Path) -> tuple[str, ...]:
    """Return all problems of a task in this repository; stale facts with file, line and hash."""
    return (
        *stale_facts(task, root),
        *_kind_problems(task, root),
        *_template_problems(task.adapter),
        *_source_problems(task.adapter),
        *_file_problems(task.adapter, root),
        *_surface_problems(task, root),
    )


def stale_facts(task: Task, root: Path) -> Iterator[str]:
    """Yield every fact whose file has changed or is gone."""
    for fact in task.facts:
        now = _digest(root, fact.file)
        if now is None:
            yield f"{fact.file}:{fact.line}: {fact.what}: the file is gone (it was {fact.sha256[:12]})"
        elif now != fact.sha256:
            yield f"{fact.file}:{fact.line}: {fact.what}: the file has changed ({fact.sha256[:12]} → {now[:12]})"


def _digest(root: Path, file: str) -> str | None:
    if path_patterns.path_problem(file) is not None:
        return None
    try:
        return files.sha256((root / file).read_bytes())
    except OSError:
        return None


def _kind_problems(task: Task, root: Path) -> Iterator[str]:
    adapter = task.adapter
    if adapter.kind == "rlx":
        extra = [name for name in ("train", "eval", "prefix", "result", "metrics") if getattr(adapter, name)]
        if extra:
            yield f"adapter.{extra[0]}: an adapter of kind rlx uses its config and has no `{extra[0]}`"
        yield from _config_problems(adapter.config, root)
        return
    if adapter.config is not None:
        yield "adapter.config: an adapter of kind command has no rlx config; name its files in train and eval"
    if not adapter.train:
        yield "adapter.train: the command that trains is missing"
    if (adapter.env is None) != (adapter.policy is None):
        yield "adapter.env: a sealed evaluation needs both `env` and `policy`"
    if (adapter.eval or adapter.env) and not adapter.checkpoint:
        yield "adapter.checkpoint: the checkpoint that training writes for the evaluation is missing"


def _config_problems(config: str | None, root: Path) -> Iterator[str]:
    if config is None:
        yield "adapter.config: the config is missing"
    elif (problem := path_patterns.path_problem(config)) is not None:
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
        yield "adapter.train: no {seed}: all seeds would train the same"
    if any("overrides" in placeholders(word) and word != "{overrides}" for word in adapter.train):
        shell = "bash -c '... \"$@\"' train {overrides}"
        yield f"adapter.train: {{overrides}} must be a separate argument; for a shell: {shell}"
    if adapter.eval:
        for name, why in (("checkpoint", "which policy to score"), ("episode_seed", "which episodes to play")):
            if name not in _named(adapter.eval):
                yield f"adapter.eval: no {{{name}}}: the command would not know {why}"
    if adapter.override and not {"key", "value"} <= set(placeholders(adapter.override)):
        yield "adapter.override: needs {key} and {value}"
    yield from _launcher_problems(adapter.launcher)


def _launcher_problems(launcher: Launcher) -> Iterator[str]:
    if launcher.executor != "custom":
        if launcher.submit or launcher.poll or launcher.cancel:
            yield f"adapter.launcher: submit, poll and cancel belong to executor custom, not to {launcher.executor}"
        return
    for name, words in (("submit", launcher.submit), ("poll", launcher.poll), ("cancel", launcher.cancel)):
        if not words:
            yield f"adapter.launcher.{name}: executor custom needs it"
    if launcher.submit and not _named(launcher.submit) & {"command", "script"}:
        yield "adapter.launcher.submit: no {command} and no {script}: it would submit nothing"


def _named(words: Argv) -> set[str]:
    return {name for word in words for name in placeholders(word)}


def _meant(word: str, known: tuple[str, ...]) -> str:
    spelled = [f"{{{name}}}" for name in known]
    return str(hint_for(f"{{{word}}}", spelled, otherwise=f"known: {', '.join(spelled)}"))


def _source_problems(adapter: Adapter) -> Iterator[str]:
    if adapter.kind == "command" and adapter.metrics is None:
        yield "adapter.metrics: the place where training writes its metrics is missing"
    if adapter.eval and adapter.result is None:
        yield "adapter.result: the place where eval writes its metrics is missing"
    for where, source in (("metrics", adapter.metrics), ("result", adapter.result)):
        if source is not None:
            yield from (f"adapter.{where}.{problem}" for problem in _source(source))
    reads_result = adapter.result is not None and "result" in placeholders(adapter.result.path)
    if reads_result and adapter.eval and "result" not in _named(adapter.eval):
        yield "adapter.eval: no {result}, but adapter.result is read from there"


def _source(source: Source) -> Iterator[str]:
    if source.reader == "stdout":
        if source.pattern is not None:
            yield from _pattern_problems(source.pattern)
        return
    if source.pattern is not None:
        yield f"pattern: belongs to reader stdout, not to {source.reader}"
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
        yield f"pattern: is not a regular expression ({error})"


def entry_files(words: Argv, adapter: Adapter, root: Path) -> tuple[str, ...]:
    """Return the files of the repository that a command names: scripts, and the file of `-m module`."""
    names = [word for word in words if _looks_like_file(word)]
    modules = [after for word, after in pairwise(words) if word == "-m"]
    for module in modules:
        tails = (f"{module.replace('.', '/')}.py", f"{module.replace('.', '/')}/__main__.py")
        places = [Path(folder, tail) for folder in adapter.python_path for tail in tails]
        names += [place.as_posix() for place in places if (root / place).is_file()]
    return tuple(dict.fromkeys(name.removeprefix("./") for name in names))


def _looks_like_file(word: str) -> bool:
    return word.endswith((".py", ".sh")) and not placeholders(word) and not word.startswith(("/", "-", "~"))


def _file_problems(adapter: Adapter, root: Path) -> Iterator[str]:
    for where in ("prefix", "train", "eval"):
        for file in entry_files(getattr(adapter, where), adapter, root):
            if not (root / file).is_file():
                yield f"adapter.{where}: no file `{file}` in the repository"
    if adapter.cwd and (not adapter.cwd.startswith("{out}/") or ".." in Path(adapter.cwd).parts):
        yield f"adapter.cwd: `{adapter.cwd}` is not a folder below {{out}}"
    for folder in adapter.python_path:
        if not (root / folder).is_dir() or ".." in Path(folder).parts or Path(folder).is_absolute():
            yield f"adapter.python_path: `{folder}` is not a folder of the repository"
    for where, reference in (("env", adapter.env), ("policy", adapter.policy)):
        file = (reference or "").rpartition(":")[0]
        if file.endswith(".py") and not (root / file).is_file():
            yield f"adapter.{where}: no file `{file}` in the repository"
    for file in adapter.policy_files:
        if not path_patterns.is_glob(file) and not (root / file).exists():
            yield f"adapter.policy_files: no file `{file}` in the repository"


def _surface_problems(task: Task, root: Path) -> Iterator[str]:
    for name, place in task.surfaces.items():
        for pattern in place.paths:
            if (problem := pattern_problem(pattern, root)) is not None:
                yield f"surfaces.{name}: `{pattern}` {problem}"


def pattern_problem(pattern: str, root: Path) -> str | None:
    """Return the problem of a path or region in this repository, if it has one."""
    problem = path_patterns.path_problem(pattern)
    if problem is not None:
        return problem
    path, name = path_patterns.split(pattern)
    if path_patterns.is_glob(path):
        if not any(path_patterns.covers_path(path, file) for file in files_in(root)):
            return "matches no file"
    elif not (root / path).exists():
        return "does not exist"
    elif name is not None:
        try:
            source_region.find((root / path).read_bytes(), name)
        except (OSError, ValueError) as error:
            return f"is not a region: {path} {error}"
    return None


def regions(path: str, root: Path) -> tuple[str, ...]:
    """Return the functions and classes of a file as regions; none if it is not a Python file."""
    if not path.endswith(".py"):
        return ()
    try:
        names = source_region.names((root / path).read_bytes())
    except (OSError, ValueError):
        return ()
    return tuple(f"{path}{path_patterns.REGION}{name}" for name in names if "." not in name)


def similar_pattern(pattern: str, root: Path) -> str | None:
    """Return the path or region that is closest to one that does not exist."""
    path, name = path_patterns.split(pattern)
    if name is None or not (root / path).is_file():
        near = did_you_mean(path, files_in(root))
        if near and name:
            near = f"{near}{path_patterns.REGION}{name}"
        return near
    try:
        near = did_you_mean(name, source_region.names((root / path).read_bytes()))
    except ValueError:
        return None
    return near and f"{path}{path_patterns.REGION}{near}"
