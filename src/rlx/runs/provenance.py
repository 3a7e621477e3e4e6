"""Provenance of an attempt (code, command, versions, machine, threads), and how the attempts of a run differ.

Not covered: secrets inside argv or inside the uncommitted diff are stored as they are. Environment variables are never
recorded except the few named here.
"""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rlx
from rlx import external_programs, files
from rlx.number_format import listed
from rlx.runs import process

if TYPE_CHECKING:
    from rlx.runs.run import Run

PACKAGES = ("numpy", "gymnasium", "torch", "stable-baselines3", "sb3-contrib", "mujoco", "box2d", "safetensors")
VARIABLES = ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "MUJOCO_GL", "PYTHONHASHSEED")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
MAX_UNTRACKED = 200
CODE = (".py", ".pyx", ".so", ".c", ".cpp", ".xml", ".mjcf", ".urdf", ".sdf")
MAX_FILES = 20_000
HARMLESS = (".md", ".rst", ".ipynb", "LICENSE", ".gitignore")
HARMLESS_FOLDERS = ("configs", "docs", "tests")
"""Files that no training runs. A run's own config is compared by its snapshot."""
NOT_CODE = (*HARMLESS_FOLDERS, "runs", "node_modules", "site-packages", "__pycache__")
_HARMFUL = (
    ":(top)",
    *(f":(top,exclude)*{name}" for name in HARMLESS),
    *(f":(top,exclude,glob)**/{folder}/**" for folder in HARMLESS_FOLDERS),
)


def provenance(root: Path, *, argv: list[str] | None = None) -> dict[str, Any]:
    """Describe the code, versions and machine of an attempt that starts now."""
    if argv is None:
        argv = sys.argv
    return {
        "git": git_state(root),
        "code_sha256": code_hash(root),
        "argv": argv,
        "versions": versions(),
        "host": socket.gethostname(),
        "boot_id": process.boot_id(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "environment": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def git_state(root: Path) -> dict[str, Any] | None:
    """Return the commit, hashes of the uncommitted diff (all of it, and code only) and untracked files, if any."""
    commit = external_programs.git("rev-parse", "HEAD", folder=root)
    if commit is None:
        return None
    diff = _diff(root)
    code = diff and _diff(root, "--", *_HARMFUL)
    listing = external_programs.git("ls-files", "--others", "--exclude-standard", folder=root) or ""
    untracked = [name for name in listing.splitlines() if not name.startswith(("runs/", ".rlx/"))]
    return {
        "commit": commit.strip(),
        "is_dirty": bool(diff),
        "diff_sha256": _sha256_or_none(diff),
        "code_diff_sha256": _sha256_or_none(code),
        "untracked": untracked[:MAX_UNTRACKED],
        "untracked_total": len(untracked),
    }


def _diff(root: Path, *paths: str) -> str:
    return external_programs.git("diff", "HEAD", "--no-ext-diff", "--no-color", *paths, folder=root) or ""


def _sha256_or_none(text: str) -> str | None:
    if not text:
        return None
    return files.sha256(text.encode())


def code_hash(root: Path) -> str | None:
    """Return one hash over the project's code and model files, tracked or not; None if there are too many."""
    code_files = _project_files(root, CODE)
    if code_files is None:
        return None
    lines = [f"{path.relative_to(root)} {_digest(path)}" for path in code_files]
    return files.sha256("\n".join(lines).encode("utf-8", "surrogateescape"))


def model_files(root: Path) -> tuple[str, ...]:
    """Return the project's model and library files, which code reads without an import that names them."""
    endings = tuple(ending for ending in CODE if ending not in (".py", ".pyx"))
    return tuple(path.relative_to(root).as_posix() for path in _project_files(root, endings) or ())


def _project_files(root: Path, endings: tuple[str, ...]) -> list[Path] | None:
    """Return the project's files with these endings; None if there are too many."""
    found: list[Path] = []
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if _may_hold_code(here / name))
        found += [here / name for name in sorted(names) if name.endswith(endings)]
        if len(found) > MAX_FILES:
            return None
    return found


def _may_hold_code(folder: Path) -> bool:
    is_venv = (folder / "pyvenv.cfg").exists()
    return not folder.name.startswith(".") and folder.name not in NOT_CODE and not is_venv


def _digest(path: Path) -> str:
    try:
        return files.sha256(path.read_bytes())
    except OSError:
        return "unreadable"


def save_diff(root: Path, folder: Path) -> None:
    """Store the uncommitted diff once next to the logs, named by its hash."""
    diff = _diff(root)
    if not diff:
        return
    path = folder / f"diff_{files.sha256(diff.encode())[:12]}.patch"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        files.write_atomic(path, diff.encode())


def versions() -> dict[str, str]:
    """Return the versions of Python, rlx and the packages that affect training."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str]:
    installed = {"python": platform.python_version(), "rlx": rlx.__version__}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            installed[package] = metadata.version(package)
    return installed


def differences(run: Run) -> list[str]:
    """Describe how the attempts of a run's seeds differ; empty if all were made the same way."""
    attempts_by_value: dict[str, dict[str, list[str]]] = {}
    for seed in run.seeds:
        for number, attempt in enumerate(seed.attempts, start=1):
            name = f"seed {seed.number}"
            if len(seed.attempts) > 1:
                name += f" attempt {number}"
            for trait, value in traits_of(attempt).items():
                attempts_by_value.setdefault(trait, {}).setdefault(value, []).append(name)
    return [
        f"{trait}: " + "; ".join(f"{value} ({listed(names, most=4)})" for value, names in values.items())
        for trait, values in attempts_by_value.items()
        if len(values) > 1
    ]


def traits_of(attempt: dict[str, Any]) -> dict[str, str]:
    """Return what may change a result, as one short text per trait."""
    environment = attempt.get("environment") or {}
    threads = [f"{name} {environment[name]}" for name in THREAD_VARIABLES if name in environment]
    traits = {
        "code": _code_trait(attempt),
        "threads": ", ".join(threads) or "not set",
        "platform": str(attempt.get("platform", "unknown")),
        "host": str(attempt.get("host", "unknown")),
    }
    return traits | {name: str(version) for name, version in (attempt.get("versions") or {}).items()}


def _code_trait(attempt: dict[str, Any]) -> str:
    git = attempt.get("git") or {}
    if not git:
        return f"{str(attempt.get('code_sha256') or '')[:8]} outside git".strip()
    commit = str(git.get("commit", ""))[:12]
    if git.get("diff_sha256"):
        return f"{commit} + uncommitted changes {str(git['diff_sha256'])[:8]}"
    return commit
