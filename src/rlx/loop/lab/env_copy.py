"""A person's own environment in a new lab: the project files behind it are copied to the same places in the lab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rlx.errors import ConfigError, UsageError
from rlx.loop.lab.lab_folder import CANDIDATE, EVALUATOR

MOST_BYTES = 50_000_000
"""How much a lab copies from a project: code and the data next to it, such as a robot's model."""
LEFT_OUT = ("runs", "__pycache__", "node_modules", "venv")


@dataclass(frozen=True)
class EnvCopy:
    """How a lab's files name an environment, and the files to copy."""

    make: str
    """The expression that makes it, with `@STEPS@` as its step limit; the class itself for many worlds."""
    make_rendered: str = ""
    """The same with a `render_mode`; empty if it takes none."""
    imports: tuple[str, ...] = ()
    """The lines that import it."""
    is_worlds: bool = False
    horizon: int | None = None
    files: dict[str, Path] = field(default_factory=dict)
    """The files to copy, by their path in the lab."""


def find_env(env_id: str, *, root: Path) -> EnvCopy:
    """Make the environment once, and return what a lab needs of it. Nothing is written.

    `env_id` is a Gymnasium id, `file.py:Class` or `module:Class`; files count from the project's root.
    """
    from rlx.config.schema import Env
    from rlx.envs.check_kwargs import takes
    from rlx.envs.make import inspect, named_by
    from rlx.envs.native_vector import is_worlds

    horizon = inspect(Env(id=env_id), root=root).horizon
    named = named_by(env_id, root=root)
    copied = _files(env_id, root=root) if ":" in env_id else {}
    if not callable(named):  # a registered spec: `gymnasium.make` knows the rest
        made = f'gymnasium.make("{env_id}", max_episode_steps=@STEPS@'
        return EnvCopy(f"{made})", f"{made}, render_mode=render_mode)", horizon=horizon, files=copied)
    module, name = _module_and_name(env_id)
    imports = _imports(module, name, copied)
    if is_worlds(named):
        return EnvCopy(name, imports=imports, is_worlds=True, horizon=horizon, files=copied)
    made = f"gymnasium.wrappers.TimeLimit({name}(), @STEPS@)"
    rendered = made.replace("()", "(render_mode=render_mode)") if takes(named, "render_mode") else ""
    return EnvCopy(made, rendered, imports, horizon=horizon, files=copied)


def _imports(module: str, name: str, copied: Mapping[str, Path]) -> tuple[str, ...]:
    """Return the lines that import a class; modules next to its file can be imported by their plain names, too."""
    line = f"from {module.replace('/', '.')} import {name}"
    folder = Path(module).parent
    siblings = [path for path in copied if Path(path).parent == folder and path.endswith(".py")]
    if folder == Path() or len(siblings) < 2:
        return (line,)
    return ("import sys", "from pathlib import Path", "",
            f'sys.path.append(str(Path(__file__).parents[1] / "{folder.as_posix()}"))', line)  # fmt: skip


def _module_and_name(env_id: str) -> tuple[str, str]:
    """Return the module of a class with slashes, so that `envs/cart.py:Cart` and `envs.cart:Cart` are alike."""
    place, _, name = env_id.rpartition(":")
    module = place.removesuffix(".py") if place.endswith(".py") else place.replace(".", "/")
    parts = Path(module).parts
    if not all(part.isidentifier() for part in (*parts, name)):
        raise ConfigError(f"`{env_id}` cannot be imported in a lab", hint="name folders, file and class like variables")
    if parts[0] in (CANDIDATE, EVALUATOR):
        raise UsageError(f"a lab has a folder `{parts[0]}` of its own", hint="move the environment to envs/")
    return module, name


def _files(env_id: str, *, root: Path) -> dict[str, Path]:
    """Return the project files behind an environment, and the data in their folders, by path from the root."""
    from rlx.evaluate.env_sources import files_behind

    found = {name: root / name for name in files_behind([env_id], root=root)}
    for folder in {path.parent for path in found.values()} - {root}:
        for path in sorted(folder.rglob("*")):
            place = path.relative_to(root)
            is_hidden = any(part.startswith(".") or part in LEFT_OUT for part in place.parts)
            if path.suffix not in (".py", ".pyc") and path.is_file() and not is_hidden:
                found[place.as_posix()] = path
    size = sum(path.stat().st_size for path in found.values())
    if size > MOST_BYTES:
        hint = "move the environment and its data into a folder of their own"
        raise UsageError(f"`{env_id}` has {size / 1e6:.0f} MB of files next to it", hint=hint)
    return found
