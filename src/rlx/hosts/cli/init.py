"""Make a project: `rlx.toml`, a config that trains, and a word to coding agents. Never overwrites.

`--env` takes a Gymnasium id, `module:Class` or `file.py:Class`; a file that is not there yet is written
as a small environment that works, to be changed into your own.

Example: rlx init lab --env Pendulum-v1
         rlx init --here --env envs/bossfight.py:BossFight
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.errors import NotFound, UsageError

if TYPE_CHECKING:
    from gymnasium import Space

    from rlx.config.starter import World


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="the folder to make")
    parser.add_argument("--here", action="store_true", help="make this folder the project")
    parser.add_argument("--env", help="environment: id, module:Class or file.py:Class (default CartPole-v1)")
    parser.add_argument("--full", action="store_true", help="make the whole folder layout, also what is still empty")


@dataclass
class Plan:
    """What is going to be written, all of it checked before the first file is."""

    root: Path
    files: dict[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    config: str = ""


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.config.yaml_lines import shown

    root = _root(args)
    plan = _plan(root, args.env, is_full=args.full, is_here=args.here)
    created = _write(plan)
    place = "" if args.here else shown(Path(args.name))
    return {
        "project": shown(root.absolute()),
        "config": plan.config,
        "created": [f"{place}/{name}" if place else name for name in created],
        "next": (f"cd {shlex.quote(place)} && " if place else "") + f"rlx train {shlex.quote(plan.config)}",
    }


def render(data: dict[str, Any]) -> str:
    return "\n".join([*(f"created: {name}" for name in data["created"]), f"next: {data['next']}"])


def _root(args: argparse.Namespace) -> Path:
    if args.here == bool(args.name):
        raise UsageError("say where the project goes: a NAME or --here", hint="rlx init lab")
    if args.here:
        return Path.cwd()
    root = Path(args.name)
    is_free = not os.path.lexists(root) or (root.is_dir() and not any(root.iterdir()))
    if not is_free:
        inside = shlex.quote(args.name)
        hint = f"choose another name, or: cd {inside} && rlx init --here" if root.is_dir() else "choose another name"
        raise UsageError(f"`{args.name}` is already there", hint=hint)
    return root


def _plan(root: Path, env: str | None, *, is_full: bool, is_here: bool) -> Plan:
    from rlx.config import starter
    from rlx.runs.project import MARKER

    env_id = env or starter.DEFAULT_ENV
    if is_here and env is None and (root / MARKER).exists():
        raise UsageError(
            "this folder is an rlx project already", hint="add a config for another task: rlx init --here --env ID"
        )
    world, env_files = _world(env_id, root, is_here=is_here)
    plan = Plan(root, folders=starter.FOLDERS if is_full else (), config=f"configs/{starter.config_name(env_id)}.yaml")
    if not (root / MARKER).exists():
        plan.files[MARKER] = starter.MARKER_TEXT
        if not os.path.lexists(root / starter.AGENTS_FILE):
            plan.files[starter.AGENTS_FILE] = starter.AGENTS_TEXT
    plan.files |= {plan.config: starter.config_text(world), **env_files}
    for name in plan.files:
        if os.path.lexists(root / name):
            raise UsageError(
                f"`{name}` is already there, and is not overwritten", hint="move it away, or train it as it is"
            )
    return plan


def _world(env_id: str, root: Path, *, is_here: bool) -> tuple[World, dict[str, str]]:
    """Return what the config depends on, and the environment's file where it has to be written."""
    from rlx.config import catalog, starter

    if catalog.for_env(env_id):
        return starter.World(env_id), {}
    place, _, class_name = env_id.rpartition(":")
    if env_id.endswith(".py"):
        place, class_name = env_id, ""
    if place.endswith(".py") and not (root / place).exists():
        _refuse_template(place, class_name, is_here=is_here)
        return starter.World(env_id), {os.path.normpath(place): starter.env_text(class_name)}
    return _inspected(env_id, root), {}


def _refuse_template(place: str, class_name: str, *, is_here: bool) -> None:
    """Say why a missing environment file cannot be written."""
    if not class_name.isidentifier():
        stem = "".join(part.capitalize() for part in Path(place).stem.replace("-", "_").split("_"))
        raise UsageError(f"`{place}` does not say which class", hint=f"--env {place}:{stem or 'MyEnv'}")
    if Path(place).is_absolute() or ".." in Path(place).parts or not place.isprintable():
        raise NotFound(f"no file `{place}`", hint="name a file inside the project: --env envs/my.py:My")
    if not is_here and Path(place).exists():
        raise UsageError(
            f"`{place}` is in this folder, but a new project does not see it",
            hint=f"rlx init --here --env {place}:{class_name}",
        )


def _inspected(env_id: str, root: Path) -> World:
    from rlx.config.schema import Env
    from rlx.config.starter import World
    from rlx.envs.make import inspect

    facts = inspect(Env(id=env_id), root=root.absolute())
    is_continuous = type(facts.action_space).__name__ == "Box"
    return World(
        env_id,
        policy=_policy(facts.observation_space),
        is_continuous=is_continuous,
        has_masks=facts.has_masks and not is_continuous,
    )


def _policy(observation: Space[Any]) -> str:
    """Return the network that reads an observation: `multi` a dict, `cnn` an image, `mlp` the rest."""
    kind, shape = type(observation).__name__, observation.shape or ()
    is_image = kind == "Box" and len(shape) == 3 and str(observation.dtype) == "uint8" and sorted(shape)[1] >= 36
    return "multi" if kind == "Dict" else "cnn" if is_image else "mlp"


def _write(plan: Plan) -> list[str]:
    """Write everything or nothing: what was made is taken away again when something fails."""
    from rlx.runs.store import write_error

    made: list[Path] = []
    try:
        for folder in ("", *(str(Path(name).parent) for name in plan.files), *plan.folders):
            _make_folder(plan.root / folder, made)
        for name, text in plan.files.items():
            with (plan.root / name).open("x", encoding="utf-8") as stream:
                made.append(plan.root / name)
                stream.write(text)
        return [*plan.files, *_ignore(plan.root), *(f"{folder}/" for folder in plan.folders)]
    except OSError as error:
        for path in reversed(made):
            with contextlib.suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        raise write_error(error, plan.root) from error


def _make_folder(folder: Path, made: list[Path]) -> None:
    for path in (*reversed(folder.parents), folder):
        if not path.is_dir():
            path.mkdir()
            made.append(path)


def _ignore(root: Path) -> list[str]:
    """Keep runs out of git: add the missing lines to `.gitignore`, keep what is there."""
    from rlx.config.starter import IGNORED

    path = root / ".gitignore"
    before = path.read_bytes() if path.is_file() else b""
    present = {line.strip().strip(b"/") for line in before.splitlines()}
    missing = [line for line in IGNORED if line.strip("/").encode() not in present]
    if not missing:
        return []
    gap = b"" if not before or before.endswith(b"\n") else b"\n"
    with path.open("ab") as stream:
        stream.write(gap + "".join(f"{line}\n" for line in missing).encode())
    return [".gitignore"]
