"""Say what this machine has and what is missing, each with what to do about it.

Exit code 1 where something is broken that every run needs; optional things that are missing do not count.

Example: rlx doctor
"""

from __future__ import annotations

import argparse
import fcntl
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import rlx
from rlx import tools
from rlx.errors import RlxError
from rlx.hosts.cli import words
from rlx.hosts.cli.output import paint
from rlx.runs import project

OK, MISSING, BROKEN = "ok", "missing", "broken"
CORE = ("numpy", "gymnasium", "PyYAML", "pydantic", "orjson", "safetensors", "matplotlib", "pillow", "imageio-ffmpeg")
EXTRAS = {
    "sb3": ("torch", "stable-baselines3", "sb3-contrib"),
    "box2d": ("box2d",),
    "mujoco": ("mujoco",),
    "tensorboard": ("tensorboard",),
    "wandb": ("wandb",),
    "mcp": ("mcp",),
}
LOW_DISK_BYTES, NO_DISK_BYTES = 2e9, 50e6
Check = dict[str, Any]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="leave out the drawing of a picture (a second or two)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    root = project.root()
    checks = [*_software(), *_machine(root), *_tools(root, is_quick=args.quick), *_hooks(root)]
    is_broken = any(check["state"] == BROKEN for check in checks)
    return {"root": str(root), "checks": checks, "is_sound": not is_broken, "exit_code": int(is_broken)}


def _check(name: str, state: str, value: str, hint: str | None = None) -> Check:
    return {"name": name, "state": state, "value": value, "hint": None if state == OK else hint}


def _software() -> Iterator[Check]:
    is_new = sys.version_info >= (3, 11)
    yield _check("python", OK if is_new else BROKEN, f"{platform.python_version()}, {sys.executable}", "install 3.11")
    yield _check("rlx", OK, rlx.__version__)
    absent = [name for name in CORE if _version(name) is None]
    present = ", ".join(f"{name} {_version(name)}" for name in CORE if _version(name))
    yield _check("core packages", BROKEN if absent else OK, present, f"pip install {' '.join(absent)}")
    for extra, packages in EXTRAS.items():
        found = [f"{name} {version}" for name in packages if (version := _version(name))]
        state = OK if len(found) == len(packages) else MISSING
        yield _check(f"extra {extra}", state, ", ".join(found) or "not installed", f"pip install 'rlx[{extra}]'")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _machine(root: Path) -> Iterator[Check]:
    from rlx.launch.resources import available_cores, visible_gpus

    yield _check("cores", OK, f"{available_cores()} usable of {os.cpu_count()}")
    threads = os.environ.get("OMP_NUM_THREADS")
    yield _check("threads", OK, f"OMP_NUM_THREADS={threads}" if threads else "pinned by rlx for every seed it trains")
    gpus = visible_gpus()
    is_cpu_build = "+cpu" in (_version("torch") or "")
    if gpus and is_cpu_build:
        yield _check("GPU", MISSING, f"{len(gpus)} seen, but torch is the CPU build", "install a CUDA build of torch")
    else:
        yield _check("GPU", OK if gpus else MISSING, f"{len(gpus)} usable", "none is needed: device auto uses the CPU")
    yield _disk(root)
    yield _writable(root)


def _disk(root: Path) -> Check:
    free = shutil.disk_usage(root).free
    state = BROKEN if free < NO_DISK_BYTES else MISSING if free < LOW_DISK_BYTES else OK
    return _check("disk", state, f"{words.size(free)} free at {root}", "free some space: rlx ls, rlx rm RUN")


def _writable(root: Path) -> Check:
    """Do what every run does: create a file, lock it, make it durable, rename it."""
    folder = project.runs_folder(root) if project.runs_folder(root).is_dir() else root
    try:
        with tempfile.TemporaryDirectory(prefix=".rlx-doctor-", dir=folder) as place:
            path = Path(place) / "probe"
            with path.open("wb") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                stream.write(b"probe")
                os.fsync(stream.fileno())
            path.rename(Path(place) / "renamed")
    except OSError as error:
        return _check("writable", BROKEN, f"{folder}: {error.strerror}", "work in a folder of yours, or set RLX_ROOT")
    return _check("writable", OK, f"{folder} takes files, locks and renames")


def _tools(root: Path, *, is_quick: bool) -> Iterator[Check]:
    version = tools.git("--version", folder=root)
    yield _check("git", OK if version else MISSING, (version or "not found").strip(),
                 "install git: runs then record their commit and changes")  # fmt: skip
    program = tools.ffmpeg_program()
    yield _check("ffmpeg", OK if program else MISSING, program or "not found", "rlx video still writes gifs")
    display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    yield _check("display", OK, display or "none; rlx draws without one")
    yield from _sandbox()
    if not is_quick:
        yield _attempt("drawing an environment", lambda: _draw(root))
        if _version("mujoco"):
            yield _drawing_mujoco()


def _sandbox() -> Iterator[Check]:
    """Try out what the kernel enforces for a program that rlx must not trust."""
    from rlx.sandbox import probe

    try:
        found = probe()
    except RlxError as error:
        yield _check("sandbox", MISSING, error.message, "studies need it (Linux with Landlock); plain runs do not")
        return
    tried = sum(says.endswith(": denied") for says in found.enforced)
    yield _check("sandbox", OK, f"Landlock {found.abi}, tried out: {tried} ways out are closed, without network")
    yield _check("sandbox leaves open", OK, "; ".join(found.not_covered))


def _hooks(root: Path) -> Iterator[Check]:
    """Say whether coding agents are stopped before they train beside the door; `rlx launch` enforces in any case."""
    from rlx.hosts.hook_state import states

    for state in states(root):
        yield _check(f"hook in {state.host}", OK if state.is_live else MISSING, state.says, state.hint)


def _attempt(name: str, action: Callable[[], str]) -> Check:
    try:
        return _check(name, OK, action())
    except (RlxError, ImportError, OSError, RuntimeError, ValueError) as error:
        return _check(name, MISSING, str(error), "rlx video needs it; training does not")


def _drawing_mujoco() -> Check:
    from rlx.envs.display import opengl_library

    library = opengl_library()
    return _check("drawing MuJoCo", OK if library else MISSING, library or "neither egl nor osmesa works",
                  "apt-get install libegl1 (or libosmesa6): rlx video needs it; training does not")  # fmt: skip


def _draw(root: Path) -> str:
    """Draw CartPole without a display, as `rlx video` does."""
    from rlx.config.schema import Env
    from rlx.envs.make import make_env

    env = make_env(Env(id="CartPole-v1"), root=root, render_mode="rgb_array")
    try:
        env.reset(seed=0)
        frame: Any = env.render()
        return f"CartPole-v1 as {frame.shape[1]} x {frame.shape[0]} pixels"
    finally:
        env.close()


def render(data: dict[str, Any]) -> str:
    width = max(len(check["name"]) for check in data["checks"])
    lines = [line for check in data["checks"] for line in _lines(check, width)]
    verdict = "ready" if data["is_sound"] else "not ready: mend what is broken above"
    return "\n".join([*lines, "", f"{verdict}; project: {data['root']}"])


def _lines(check: Check, width: int) -> Iterator[str]:
    colour = {OK: "green", MISSING: "yellow", BROKEN: "red"}[check["state"]]
    yield f"{paint(check['state'].ljust(7), colour)}  {check['name']:{width}s}  {check['value']}"
    if check["hint"]:
        yield f"{'':{width + 11}s}hint: {check['hint']}"
