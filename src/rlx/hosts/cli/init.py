"""Make a project: `rlx.toml`, a config that trains, and notes for coding agents. rlx never overwrites a file.

`--env` takes a Gymnasium id, `module:Class` or `file.py:Class`. If the file does not exist, rlx writes a small working
environment that you can change into your own. `--from zoo:FILE` takes the hyperparameters of a file of RL Baselines3
Zoo; its name is the algorithm. Settings without a place in rlx are listed in the config.

Example: rlx init my-project --env Pendulum-v1
         rlx init --here --env envs/bossfight.py:BossFight
         rlx init my-project --env Pendulum-v1 --from zoo:hyperparams/sac.yml
"""

from __future__ import annotations

import contextlib
import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.errors import NotFound, UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser
from rlx.hosts.cli.output import labelled

if TYPE_CHECKING:
    from gymnasium import Space

    from rlx.config.project_template import ProjectEnv


def arguments(parser: Parser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="the folder to make")
    parser.add_argument("--here", action="store_true", help="make this folder the project")
    parser.add_argument("--env", help="an id, module:Class or file.py:Class (default: CartPole-v1)")
    parser.add_argument("--from", dest="source", metavar="zoo:FILE", help="hyperparameters of RL Baselines3 Zoo (YAML)")
    parser.add_argument("--full", action="store_true", help="also make the folders that are still empty")


@dataclass
class ProjectFiles:
    """The files and folders of a new project, checked before the first one is written."""

    root: Path
    files: dict[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    config: str = ""


def run(args: Args) -> Data:
    from rlx.config.yaml_lines import shown
    from rlx.runs import project

    root = _root(args)
    plan = _plan(root, args.env, is_here=args.here)
    left_out = _use_zoo(plan, args) if args.source else []
    if args.full:
        from rlx.config import project_template

        plan.folders = project_template.FOLDERS
    created = _write(plan)
    command = f"rlx train {shlex.quote(plan.config)}"
    if not args.here:
        project.mark_own(root)  # the folder was new or empty: nothing in it came from elsewhere
        place = shown(Path(args.name))
        created = [f"{place}/{name}" for name in created]
        command = f"cd {shlex.quote(place)} && {command}"
    place = shown(root.absolute())
    return {"project": place, "config": plan.config, "created": created, "left_out": left_out, "next": command}


def _use_zoo(plan: ProjectFiles, args: Args) -> list[str]:
    """Replace the planned config by one of the zoo's; return the settings that have no place in it."""
    from rlx.adopt.zoo_config import zoo_config
    from rlx.config.project_template import DEFAULT_ENV

    kind, _, place = args.source.partition(":")
    if kind != "zoo" or not place:
        raise UsageError(f"--from {args.source} is not a source", hint="--from zoo:hyperparams/ppo.yml")
    config = zoo_config(Path(place), args.env or DEFAULT_ENV)
    plan.files[plan.config] = config.text(Path(place).name)
    return config.left_out


def render(data: Data) -> str:
    return labelled({"created": data["created"], "left out": data["left_out"], "next": data["next"]})


def _root(args: Args) -> Path:
    if args.here == bool(args.name):
        raise UsageError("name the new folder, or use --here", hint="rlx init my-project")
    if args.here:
        return Path.cwd()
    root = Path(args.name)
    if not os.path.lexists(root) or (root.is_dir() and not any(root.iterdir())):
        return root
    hint = "choose another name"
    if root.is_dir():
        hint += f", or: cd {shlex.quote(args.name)} && rlx init --here"
    raise UsageError(f"`{args.name}` already exists", hint=hint)


def _plan(root: Path, env: str | None, *, is_here: bool) -> ProjectFiles:
    from rlx.config import project_template
    from rlx.runs.project import MARKER

    env_id = env or project_template.DEFAULT_ENV
    if is_here and env is None and (root / MARKER).exists():
        hint = "add a config for another task: rlx init --here --env ID"
        raise UsageError("this folder is already an rlx project", hint=hint)
    world, env_files = _world(env_id, root, is_here=is_here)
    plan = ProjectFiles(root, config=f"configs/{project_template.config_name(env_id)}.yaml")
    if not (root / MARKER).exists():
        plan.files[MARKER] = project_template.MARKER_TEXT
        if not os.path.lexists(root / project_template.AGENTS_FILE):
            plan.files[project_template.AGENTS_FILE] = project_template.AGENTS_TEXT
    plan.files |= {plan.config: project_template.config_text(world), **env_files}
    for name in plan.files:
        if os.path.lexists(root / name):
            hint = "move it away, or train with it"
            raise UsageError(f"`{name}` already exists, and rlx does not overwrite it", hint=hint)
    return plan


def _world(env_id: str, root: Path, *, is_here: bool) -> tuple[ProjectEnv, dict[str, str]]:
    """Return what the config depends on, and the environment's file if rlx has to write it."""
    from rlx.config import catalog, project_template

    if catalog.for_env(env_id):
        return project_template.ProjectEnv(env_id), {}
    place, _, class_name = env_id.rpartition(":")
    if env_id.endswith(".py"):
        place = env_id
        class_name = ""
    if place.endswith(".py") and not (root / place).exists():
        _refuse_template(place, class_name, is_here=is_here)
        return project_template.ProjectEnv(env_id), {os.path.normpath(place): project_template.env_text(class_name)}
    return _inspected(env_id, root), {}


def _refuse_template(place: str, class_name: str, *, is_here: bool) -> None:
    """Raise if rlx cannot write a missing environment file."""
    path = Path(place)
    if not class_name.isidentifier():
        stem = "".join(part.capitalize() for part in path.stem.replace("-", "_").split("_"))
        raise UsageError(f"`{place}` does not name a class", hint=f"--env {place}:{stem or 'MyEnv'}")
    if path.is_absolute() or ".." in path.parts or not place.isprintable():
        raise NotFound(f"no file `{place}`", hint="name a file inside the project: --env envs/my.py:My")
    if not is_here and path.exists():
        hint = f"rlx init --here --env {place}:{class_name}"
        raise UsageError(f"`{place}` is in this folder, but a new project does not see it", hint=hint)


def _inspected(env_id: str, root: Path) -> ProjectEnv:
    from rlx.config.project_template import ProjectEnv
    from rlx.config.schema import Env
    from rlx.envs.make import inspect

    facts = inspect(Env(id=env_id), root=root.absolute())
    is_continuous = type(facts.action_space).__name__ == "Box"
    has_masks = facts.has_masks and not is_continuous
    return ProjectEnv(env_id, policy=_policy(facts.observation_space), is_continuous=is_continuous, has_masks=has_masks)


def _policy(observation: Space[Any]) -> str:
    """Return the network for an observation: `multi` for a dict, `cnn` for an image, `mlp` for the rest."""
    kind = type(observation).__name__
    shape = observation.shape or ()
    if kind == "Dict":
        return "multi"
    if kind == "Box" and len(shape) == 3 and str(observation.dtype) == "uint8" and sorted(shape)[1] >= 36:
        return "cnn"
    return "mlp"


def _write(plan: ProjectFiles) -> list[str]:
    """Write everything or nothing: if something fails, remove the new files."""
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
    """Keep runs out of git: append the missing lines to `.gitignore`."""
    from rlx.config.project_template import IGNORED

    path = root / ".gitignore"
    before = b""
    if path.is_file():
        before = path.read_bytes()
    present = {line.strip().strip(b"/") for line in before.splitlines()}
    missing = [line for line in IGNORED if line.strip("/").encode() not in present]
    if not missing:
        return []
    with path.open("ab") as stream:
        if before and not before.endswith(b"\n"):
            stream.write(b"\n")
        stream.write("".join(f"{line}\n" for line in missing).encode())
    return [".gitignore"]
