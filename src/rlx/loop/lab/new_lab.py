"""Create a lab: its files, its repository, and the study of the first rung; and approve it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rlx import external_programs, files
from rlx.config import project_template
from rlx.config.load import dump_data, load
from rlx.errors import ConfigError, Refused, RlxError, UsageError
from rlx.launch.git import worktree
from rlx.loop.lab import lab_config, rung_study
from rlx.loop.lab.env_copy import EnvCopy, find_env
from rlx.loop.lab.lab_config import Caps, LabConfig, LabKind, LabMetric, Rung, Worlds
from rlx.loop.lab.lab_folder import EVALUATOR, PROGRAM, RUNGS, SURFACE, Lab
from rlx.loop.lab.training_file import read_training, with_training
from rlx.loop.study.approve import approve
from rlx.runs import project
from rlx.study.study_folder import valid_name

TEMPLATES = Path(__file__).parent / "templates"
Template = Literal["gymnasium", "batched", "simverse"]
GRID_STEPS = 20
UNLIMITED_STEPS = 500
"""The step limit of an environment that has none of its own."""
_AUTHOR = ("-c", "user.name=rlx", "-c", "user.email=rlx@localhost")


@dataclass(frozen=True)
class LabWishes:
    """The options of a new lab."""

    template: Template = "gymnasium"
    env_id: str = project_template.DEFAULT_ENV
    kind: LabKind = "solve"
    metric: str | None = None
    max_steps: int | None = None
    solved: str | None = None
    ladder: tuple[tuple[int, int], ...] = ()


def new_lab(folder: Path, wishes: LabWishes) -> Lab:
    """Write a lab into a new folder: mission, candidate, evaluator, rules, repository and the first study."""
    name = valid_name(folder.name, kind="lab")
    if os.path.lexists(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        raise UsageError(f"`{folder}` already exists", hint="choose another name")
    env = find_env(wishes.env_id, root=project.root()) if wishes.template == "gymnasium" else None
    config = _config(name, wishes, env)
    texts = _texts(config, wishes, env)
    contents = {path: text.encode() for path, text in texts.items()}
    if env is not None:
        contents = {path: source.read_bytes() for path, source in env.files.items()} | contents
    for path, content in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        files.write_atomic(folder / path, content)
    lab = Lab(folder.resolve())
    if env is not None and env.files:
        _require_copy(lab)
    write_rungs(lab)
    external_programs.git_bytes("init", "--quiet", folder=lab.root)
    commit_all(lab, "Start lab")
    rung_study.found_rung(lab, lab.config.ladder[0], commit=worktree.head_commit(lab.root))
    return lab


def _require_copy(lab: Lab) -> None:
    """Make the copied environment once; if that fails, remove the lab and say that a file is missing."""
    from rlx.config.schema import Env
    from rlx.envs.make import inspect

    try:
        for env_id in (f"{EVALUATOR}/env.py:Task", rung_study.training_env(lab)):
            inspect(Env(id=env_id), root=lab.root)
    except RlxError as error:
        shutil.rmtree(lab.root)
        hint = "the lab has a copy of its files and of those that they import; put data that it reads next to them"
        raise ConfigError(f"the environment does not run in the lab: {error.message}", hint=hint) from None


def approve_lab(lab: Lab, *, by: str) -> dict[str, Any]:
    """Approve the lab as its files are now. Edits since `new` are committed, and the first study is written again."""
    study = lab.study
    if study.state().approval is None and lab.rung == lab.config.ladder[0]:
        write_rungs(lab)
        _require_sound_rungs(lab)
        commit_all(lab, "Edit lab")
        rung_study.replace_rung(lab, lab.rung, commit=worktree.head_commit(lab.root))
    return approve(lab.study, by=by)


def write_rungs(lab: Lab) -> None:
    """Write the training config of every rung from the rules and from the candidate as it is now."""
    for rung in lab.config.ladder:
        path = lab.root / RUNGS / f"{rung.slug}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        head = f"# Written by rlx from {lab_config.FILE} and {SURFACE[1]}: the training at rung {rung.name}.\n"
        files.write_atomic(path, (head + dump_data(rung_config(lab, rung))).encode())


def _require_sound_rungs(lab: Lab) -> None:
    """Raise if the rules and the first candidate do not fit together, in words of the files that a person edits."""
    for rung in lab.config.ladder:
        try:
            load(lab.root / RUNGS / f"{rung.slug}.yaml")
        except ConfigError as error:
            hint = f"edit {SURFACE[1]}, or `worlds` and `ladder` in {lab_config.FILE}, then approve again"
            raise ConfigError(f"rung {rung.name} cannot train: {error.message}", hint=hint) from None


def rung_config(lab: Lab, rung: Rung) -> dict[str, Any]:
    """Return the config that trains the lab's candidate at a rung."""
    rules = lab.config
    steps = rules.steps(rung)
    task = f"{EVALUATOR}/env.py:Task"
    evaluation: dict[str, Any] = {"every": steps, "episodes": 1, "env": {"id": task, "kwargs": {}, "wrappers": []}}
    if rules.metric.name in ("return", "success_rate", "pass_rate"):
        evaluation["metric"] = rules.metric.name
    if rules.metric.solved:
        evaluation["scenarios"] = {"solved": {"pass": rules.metric.solved}}
    base = {
        "env": {"id": rung_study.training_env(lab), "num_envs": rules.worlds.count},
        "algo": {"total_timesteps": steps},
        "eval": evaluation,
    }
    source = (lab.root / SURFACE[1]).read_text(encoding="utf-8")
    return with_training(base, read_training(source, file=SURFACE[1]))


def commit_all(lab: Lab, message: str) -> None:
    """Commit the lab's files; nothing if none changed."""
    external_programs.git_bytes("add", "--all", folder=lab.root)
    if worktree.changed_paths(lab.root):
        external_programs.git_bytes(*_AUTHOR, "commit", "--quiet", "--message", message, folder=lab.root)


def _config(name: str, wishes: LabWishes, env: EnvCopy | None) -> LabConfig:
    is_grid = env is None
    own_steps = GRID_STEPS if env is None else env.horizon or UNLIMITED_STEPS
    steps = wishes.max_steps or own_steps
    metric = wishes.metric or ("success_rate" if is_grid or wishes.kind == "build" else "return")
    worlds = Worlds(count=32 if is_grid else 8, max_steps=steps)
    values: dict[str, Any] = {
        "lab": name,
        "kind": wishes.kind,
        "metric": LabMetric(name=metric, solved=wishes.solved),
        "worlds": worlds,
        "caps": Caps(max_steps=max(steps, Caps().max_steps)),
    }
    if wishes.ladder:
        values["ladder"] = tuple(Rung(train_episodes=train, eval_episodes=played) for train, played in wishes.ladder)
    return LabConfig(**values)


def _texts(config: LabConfig, wishes: LabWishes, env: EnvCopy | None) -> dict[str, str]:
    """Return the files of a new lab by path."""
    is_grid = env is None
    folder = "worlds" if env is not None and env.is_worlds else wishes.template
    task = "a small grid world: reach the goal" if is_grid else wishes.env_id
    source = "the candidate's own environment, judged by evaluator/" if config.kind == "build" else "evaluator/env.py"
    words = {
        **_env_words(env),
        "NAME": config.lab, "ENV": wishes.env_id, "TASK": task, "STEPS": str(config.worlds.max_steps),
        "METRIC": config.metric.name, "SOURCE": source, "ROLLOUT": "16" if is_grid else "128",
    }  # fmt: skip
    candidate = f"{folder}/candidate_env.txt"
    evaluator = f"{folder}/evaluator_env.txt"
    if config.kind == "build":
        evaluator = f"{folder}/judge.txt"
    texts = {
        PROGRAM: _filled("program.md", words),
        "AGENTS.md": _filled("agents.md", words),
        SURFACE[0]: _filled(candidate, words),
        SURFACE[1]: _filled("train.txt", words),
        f"{EVALUATOR}/env.py": _filled(evaluator, words),
        lab_config.FILE: lab_config.dump(config),
        "rlx.toml": project_template.MARKER_TEXT,
        ".gitignore": "/runs/\n/.rlx/\n__pycache__/\n",
    }
    if config.kind == "build":
        texts[f"{EVALUATOR}/scenarios.py"] = _filled(f"{folder}/scenarios.txt", words)
    return texts


def _env_words(env: EnvCopy | None) -> dict[str, str]:
    """Return what the templates say about an environment; `@STEPS@` in it is replaced afterwards."""
    if env is None:
        return {}
    rendered = env.make_rendered
    return {
        "IMPORTS": "".join(f"{line}\n" for line in env.imports),
        "MAKE": env.make,
        "MAKE_RENDERED": rendered or env.make,
        "RENDER": ", render_mode=None" if rendered else "",
    }


def _filled(template: str, words: Mapping[str, str]) -> str:
    path = TEMPLATES / template
    if not path.is_file():
        raise Refused(f"the template {template} does not exist", hint="rlx lab new --help")
    text = path.read_text(encoding="utf-8")
    for name, value in words.items():
        text = text.replace(f"@{name}@", value)
    return text
