"""A task: a problem in a repository, how it is trained and measured there, and which parts of it are what."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rlx.config.schema import Count, Section, Text

SCHEMA: Literal[1] = 1
Name = Annotated[str, Field(strict=True, pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
Argv = tuple[Text, ...]
Surface = Literal["reward", "curriculum", "randomisation", "hyperparameters", "env", "evaluator", "policy"]
ReaderName = Literal["jsonl", "csv", "tensorboard", "stdout"]


class Card(Section):
    """What the task is about, in the words of the person who set it."""

    mission: Text = ""
    constraints: tuple[Text, ...] = ()
    non_goals: tuple[Text, ...] = ()


class Source(Section):
    """Where figures are read: a file (`{out}` is the job's folder) or what a command prints, and by which reader.

    `names` maps what rlx calls a figure to what the source calls it; `pattern` is for `stdout` (named groups).
    """

    reader: ReaderName
    path: Text = ""
    names: dict[str, Text] = Field(default_factory=dict)
    step: Text = "step"
    pattern: Text | None = None


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
    defaults: dict[str, Text | int | float | bool | None] = Field(default_factory=dict)
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


class Place(Section):
    """A part of the repository: paths (globs, or regions as `file.py::Class.method`) and config keys (`algo.*`)."""

    paths: tuple[Text, ...] = ()
    keys: tuple[Text, ...] = ()


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
