"""Check this machine: packages, GPU, disk, programs, sandbox and hooks, each with a hint if it is missing.

If something is broken that every run needs, the exit code is 1. Missing optional parts do not count.

Example: rlx doctor
"""

import fcntl
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import rlx
from rlx import external_programs, files
from rlx.errors import RlxError
from rlx.hosts.agents import hook_state
from rlx.hosts.cli.arguments import Args, Data, Parser
from rlx.hosts.cli.format import size
from rlx.hosts.cli.output import paint
from rlx.runs import project

OK = "ok"
MISSING = "missing"
BROKEN = "broken"
COLOURS = {OK: "green", MISSING: "yellow", BROKEN: "red"}
CORE = ("numpy", "gymnasium", "PyYAML", "pydantic", "orjson", "safetensors", "matplotlib", "pillow", "imageio-ffmpeg")
EXTRAS = {
    "sb3": ("torch", "stable-baselines3", "sb3-contrib"),
    "box2d": ("box2d",),
    "mujoco": ("mujoco",),
    "tensorboard": ("tensorboard",),
    "wandb": ("wandb",),
    "mcp": ("mcp",),
    "ui": ("starlette", "uvicorn"),
    "ray": ("ray",),
}
NETWORK_DISKS = (
    "nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph",
    "afs", "orangefs", "9p",
)  # fmt: skip
LOW_DISK_BYTES = 2e9
NO_DISK_BYTES = 50e6
Check = Data


def arguments(parser: Parser) -> None:
    parser.add_argument("--quick", action="store_true", help="do not draw a test picture (a second or two)")


def run(args: Args) -> Data:
    root = project.root()
    checks = [*_software(), *_machine(root), *_programs(root)]
    if not args.quick:
        checks += _drawing(root)
    for hook in hook_state.states(root):
        checks.append(_optional(f"hook in {hook.host}", hook.is_live, hook.says, hook.hint))
    is_broken = any(check["state"] == BROKEN for check in checks)
    return {"root": str(root), "checks": checks, "is_sound": not is_broken, "exit_code": int(is_broken)}


def _check(name: str, state: str, value: str, hint: str | None = None) -> Check:
    if state == OK:
        hint = None
    return {"name": name, "state": state, "value": value, "hint": hint}


def _optional(name: str, is_present: bool, value: str, hint: str) -> Check:
    """Return the check of something that rlx can work without."""
    return _check(name, OK if is_present else MISSING, value, hint)


def _software() -> Iterator[Check]:
    yield _check("python", OK, f"{platform.python_version()}, {sys.executable}")
    yield _check("rlx", OK, rlx.__version__)
    present = _versions(CORE)
    core = OK
    if len(present) < len(CORE):
        core = BROKEN
    absent = " ".join(name for name in CORE if name not in present)
    yield _check("core packages", core, _spell(present), f"pip install {absent}")
    for extra, packages in EXTRAS.items():
        present = _versions(packages)
        is_complete = len(present) == len(packages)
        hint = f"pip install 'rlx[{extra}]'"
        yield _optional(f"extra {extra}", is_complete, _spell(present) or "not installed", hint)


def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    versions = {}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _spell(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _machine(root: Path) -> Iterator[Check]:
    from rlx.launch.resources import available_cores, visible_gpus

    yield _check("cores", OK, f"{available_cores()} usable of {os.cpu_count()}")
    threads = os.environ.get("OMP_NUM_THREADS")
    yield _check("threads", OK, f"OMP_NUM_THREADS={threads}" if threads else "rlx sets them for every seed it trains")
    gpus = visible_gpus()
    if gpus and "+cpu" in _versions(("torch",)).get("torch", ""):
        yield _check("GPU", MISSING, f"{len(gpus)} seen, but torch is the CPU build", "install a CUDA build of torch")
    else:
        usable = f"{len(gpus)} usable"
        yield _optional("GPU", bool(gpus), usable, "not needed: `device: auto` uses the CPU")
    yield _disk(root)
    yield _writable(root)


def _disk(root: Path) -> Check:
    free = shutil.disk_usage(root).free
    state = OK
    if free < LOW_DISK_BYTES:
        state = MISSING
    if free < NO_DISK_BYTES:
        state = BROKEN
    return _check("disk", state, f"{size(free)} free at {root}", "free some space: rlx ls, rlx rm RUN")


def _writable(root: Path) -> Check:
    """Do what every run does: create a file, lock it, flush it to disk, rename it."""
    folder = project.runs_folder(root)
    if not folder.is_dir():
        folder = root
    has_locks = True
    try:
        with tempfile.TemporaryDirectory(prefix=".rlx-doctor-", dir=folder) as place:
            path = Path(place) / "probe"
            with path.open("wb") as stream:
                has_locks = _is_lockable(stream.fileno())
                stream.write(b"probe")
                os.fsync(stream.fileno())
            path.rename(Path(place) / "renamed")
    except OSError as error:
        return _check("writable", BROKEN, f"{folder}: {error.strerror}", "work in a folder of yours, or set RLX_ROOT")
    says = f"{folder} takes files, locks and renames"
    kind = file_system(folder, Path("/proc/mounts"))
    if kind in NETWORK_DISKS:
        says += f"; {kind} is a network disk, so other hosts may not see locks: rlx also checks heartbeats there,"
        says += " and its index uses no write-ahead log"
    if not has_locks:
        says = f"{folder} takes files and renames, but no locks: rlx locks files in this machine's temporary folder."
        says += " Start the jobs of a project from one host only; the index is held in memory"
    return _check("writable", OK, says)


def _is_lockable(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in files.NO_LOCKS:
            raise
        return False
    return True


def file_system(folder: Path, mounts: Path) -> str:
    """Return the type of the file system that holds a folder, by the longest mount point above it; empty if unknown."""
    found: dict[str, str] = {}
    try:
        for line in mounts.read_text().splitlines():
            _, point, kind, *_ = line.split()
            found[point] = kind
    except (OSError, ValueError):
        return ""
    for parent in (folder.resolve(), *folder.resolve().parents):
        if str(parent) in found:
            return found[str(parent)]
    return ""


def _programs(root: Path) -> Iterator[Check]:
    version = (external_programs.git("--version", folder=root) or "").strip()
    hint = "install git, so that runs record their commit and changes"
    yield _optional("git", bool(version), version or "not found", hint)
    ffmpeg = external_programs.ffmpeg_program()
    yield _optional("ffmpeg", bool(ffmpeg), ffmpeg or "not found", "not needed for gifs: rlx video --gif")
    display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    yield _check("display", OK, display or "none; rlx draws without one")
    yield from _sandbox()


def _sandbox() -> Iterator[Check]:
    """Test what the kernel enforces for programs that rlx must not trust."""
    from rlx.sandbox.self_test import run_self_test

    try:
        report = run_self_test()
    except RlxError as error:
        yield _check("sandbox", MISSING, error.message, "studies need it (Linux with Landlock); plain runs do not")
        return
    yield _check("sandbox", OK, f"Landlock {report.abi}: {len(report.enforced)} restrictions tested, no network")
    yield _check("sandbox leaves open", OK, "; ".join(report.not_covered))


def _drawing(root: Path) -> Iterator[Check]:
    try:
        yield _check("drawing an environment", OK, _draw(root))
    except (RlxError, ImportError, OSError, RuntimeError, ValueError) as error:
        yield _check("drawing an environment", MISSING, str(error), "only rlx video needs it")
    if _versions(("mujoco",)):
        from rlx.envs.headless import opengl_library

        hint = "apt-get install libegl1 (or libosmesa6); only rlx video needs it"
        library = opengl_library()
        yield _optional("drawing MuJoCo", bool(library), library or "neither egl nor osmesa works", hint)


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


def render(data: Data) -> str:
    width = max(len(check["name"]) for check in data["checks"])
    lines = []
    for check in data["checks"]:
        state = paint(check["state"].ljust(7), COLOURS[check["state"]])
        lines.append(f"{state}  {check['name']:{width}s}  {check['value']}")
        if check["hint"]:
            lines.append(f"{'':{width + 11}s}hint: {check['hint']}")
    summary = "ready"
    if not data["is_sound"]:
        summary = "not ready: fix the broken checks above"
    return "\n".join([*lines, "", f"{summary}; project: {data['root']}"])
