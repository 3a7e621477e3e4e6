"""Code that a stored config names: imported only from the project's own tree outside `runs/`, unless it is trusted.

A run, a checkpoint or a whole project can come from anybody. A project that was unpacked or copied is somebody else's
until somebody trains in it or makes something in it. A stored config may name `file.py:Class` or `module:Class`, and to
make such an environment means to execute that file. rlx checks the names before it imports anything of a project.
A run that was not made in its folder may name classes, of packages too, but a function only from the project's files:
packages have functions that load a pickle or execute a text.
Not covered: what the import of an installed module does, and configs that a person names to train.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from rlx.config.load import document, load, parse
from rlx.config.schema import COMMAND
from rlx.envs.headless import choose_opengl
from rlx.envs.import_object import load_object, own_places
from rlx.errors import Refused, RlxError
from rlx.runs import project
from rlx.runs.run import SNAPSHOT

if TYPE_CHECKING:
    from rlx.config.schema import Experiment
    from rlx.runs.run import Run

_TRUST_HINT = "look at that code; if you trust it, repeat the command with --trust"
_PROGRAM_HINT = "look at it; if you trust it, repeat the command with --trust"
_trusted = {"all": False}


def trust_stored_code(*, is_trusted: bool) -> None:
    """Say whether this process may run whatever code a stored config names: a person asks for it with `--trust`."""
    _trusted["all"] = is_trusted


def is_trusting() -> bool:
    """Say whether somebody asked this process with `--trust` to run code from elsewhere."""
    return _trusted["all"]


def stored_experiment(run: Run, *, root: Path) -> Experiment:
    """Return the experiment of a stored run; refused if it names code that the project does not hold."""
    source = f"{run.name}/config_snapshot.yaml"
    for problem in code_problems(run.config, place=run.path, root=root):
        raise Refused(f"{source} {problem}", hint=_TRUST_HINT)
    return parse(run.config, source=source)


def refuse_stored_code(config: Path, *, root: Path) -> None:
    """Refuse a config that a person names if a run stores it, and it names code that the project does not hold."""
    is_stored = config.name == SNAPSHOT or config.resolve().is_relative_to(project.runs_folder(root).resolve())
    if not (is_stored and config.is_file()):
        return
    for problem in code_problems(document(load(config)), place=config.parent, root=root):
        raise Refused(f"{config} {problem}", hint=_TRUST_HINT)


def refuse_foreign_program(what: str, *, root: Path, item: Path | None = None, hint: str = _PROGRAM_HINT) -> None:
    """Refuse to start a program that the files of a project name, if the project came from elsewhere.

    The same holds for an `item`, the folder of a sweep, campaign or study that was copied into one's own project.
    """
    if _trusted["all"]:
        return
    if not project.is_own(root):
        raise Refused(
            f"nobody has trained or made anything in this folder yet, and its files name a program to run: {what}",
            hint=hint,
        )
    if item is not None and not project.is_made_here(item):
        raise Refused(
            f"{item.name} was not made in this folder, and its files name a program to run: {what}", hint=hint
        )


def refuse_code_of_foreign_project(config: Mapping[str, Any], *, root: Path) -> None:
    """Refuse to make what a config of a project from elsewhere names, except for classes of packages."""
    if _trusted["all"] or project.is_own(root):
        return
    for name in code_references(config):
        if own_places(name, root=root) or not _is_harmless(name, root):
            refuse_foreign_program(f"`{name}`", root=root)


def code_problems(config: Mapping[str, Any], *, place: Path, root: Path) -> Iterator[str]:
    """Yield why code that the config stored at `place` names is not executed."""
    if _trusted["all"]:
        return
    runs = project.runs_folder(root).resolve()
    is_own = place.resolve().is_relative_to(runs)
    is_made_here = is_own and project.is_own(root) and _is_run_made_here(place.resolve(), runs)
    if config.get("backend") == COMMAND and not is_made_here:
        yield "was not made in this folder and names a program to run: its `command`"
    for name in code_references(config):
        places = list(own_places(name, root=root))
        if not is_own:
            yield f"does not belong to this project and names code to run: `{name}`"
        elif any(not _is_project_code(path, root) for path in places):
            yield f"names code to run that is not in the project's own tree outside runs/: `{name}`"
        elif places and not project.is_own(root):
            yield f"names code to run, and nobody has trained in this folder yet: `{name}`"
        elif not is_made_here and not _is_harmless(name, root):
            yield f"was not made in this folder and names neither a class nor a function of its files: `{name}`"


def _is_run_made_here(place: Path, runs: Path) -> bool:
    inside = place.relative_to(runs).parts
    return bool(inside) and project.is_made_here(runs / inside[0])


def _is_harmless(name: str, root: Path) -> bool:
    """Say whether a name means a class, or a function of the project's own files; also if nothing has that name."""
    choose_opengl()  # the import may be MuJoCo's
    try:
        value = load_object(name, root=root)
    except RlxError:
        return True  # a registered id, or a mistake that making it will explain
    while isinstance(value, functools.partial):
        value = value.func
    if isinstance(value, type):
        return value.__module__.partition(".")[0] not in sys.stdlib_module_names
    code = getattr(inspect.unwrap(value), "__code__", None)
    return isinstance(code, CodeType) and _is_project_code(Path(code.co_filename), root)


def _is_project_code(path: Path, root: Path) -> bool:
    resolved = path.resolve()
    kept = ((root / folder).resolve() for folder in ("runs", ".rlx"))
    return resolved.is_relative_to(root.resolve()) and not any(resolved.is_relative_to(folder) for folder in kept)


def code_references(config: Mapping[str, Any]) -> list[str]:
    """Return the code that a config names to import and run: `module:name`, `file.py:Class`."""
    envs = [_mapping(config.get("env")), _mapping(_mapping(config.get("eval")).get("env"))]
    scenarios = _mapping(_mapping(config.get("eval")).get("scenarios"))
    envs += [_mapping(_mapping(scenario).get("env")) for scenario in scenarios.values()]
    named: list[Any] = [env.get("id") for env in envs]
    named += [_mapping(wrapper).get("name", wrapper) for env in envs for wrapper in env.get("wrappers") or ()]
    policy = _mapping(config.get("policy"))
    named += [_mapping(config.get("algo")).get("name"), policy.get("type"), *_mapping(policy.get("kwargs")).values()]
    return [name for name in named if isinstance(name, str) and ":" in name]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
