"""Where an attempt came from: code, command, versions, machine, threads.

What is not covered: secrets inside argv or inside the uncommitted diff are kept as they stand; environment variables
are never recorded except the few named here.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import rlx
from rlx import files, tools
from rlx.runs import process

PACKAGES = ("numpy", "gymnasium", "torch", "stable-baselines3", "sb3-contrib", "mujoco", "box2d", "safetensors")
VARIABLES = ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "MUJOCO_GL", "PYTHONHASHSEED")
MAX_UNTRACKED = 200
CODE = (".py", ".pyx", ".so", ".c", ".cpp", ".xml", ".mjcf", ".urdf", ".sdf")
MAX_FILES = 20_000
HARMLESS = (".md", ".rst", ".ipynb", "LICENSE", ".gitignore")
HARMLESS_FOLDERS = ("configs", "docs", "tests")
"""Files of a repository that no training runs; a run's own config is compared by its snapshot."""
NOT_CODE = (*HARMLESS_FOLDERS, "runs", "node_modules", "site-packages", "__pycache__")
_HARMFUL = (
    ":(top)",
    *(f":(top,exclude)*{name}" for name in HARMLESS),
    *(f":(top,exclude,glob)**/{folder}/**" for folder in HARMLESS_FOLDERS),
)


def provenance(root: Path, *, argv: list[str] | None = None) -> dict[str, Any]:
    """Describe the code, versions and machine of an attempt that starts now."""
    return {
        "git": git_state(root),
        "code_sha256": code_hash(root),
        "argv": argv if argv is not None else sys.argv,
        "versions": versions(),
        "host": socket.gethostname(),
        "boot_id": process.boot_id(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "environment": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def git_state(root: Path) -> dict[str, Any] | None:
    """Return commit, hash of the uncommitted diff (all of it, and of code alone) and untracked files; None without."""
    commit = tools.git("rev-parse", "HEAD", folder=root)
    if commit is None:
        return None
    diff = tools.git("diff", "HEAD", "--no-ext-diff", "--no-color", folder=root) or ""
    code = tools.git("diff", "HEAD", "--no-ext-diff", "--no-color", "--", *_HARMFUL, folder=root) if diff else ""
    status = tools.git("ls-files", "--others", "--exclude-standard", folder=root) or ""
    untracked = [name for name in status.splitlines() if not name.startswith(("runs/", ".rlx/"))]
    return {
        "commit": commit.strip(),
        "is_dirty": bool(diff),
        "diff_sha256": files.sha256(diff.encode()) if diff else None,
        "code_diff_sha256": files.sha256(code.encode()) if code else None,
        "untracked": untracked[:MAX_UNTRACKED],
        "untracked_total": len(untracked),
    }


def code_hash(root: Path) -> str | None:
    """Return one hash over the project's code and model files, tracked by git or not; None where they are too many."""
    found: list[Path] = []
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in NOT_CODE and not _is_venv(here / name)
        )
        found += [here / name for name in sorted(names) if name.endswith(CODE)]
        if len(found) > MAX_FILES:
            return None
    lines = [f"{path.relative_to(root)} {_digest(path)}" for path in found]
    return files.sha256("\n".join(lines).encode("utf-8", "surrogateescape"))


def _is_venv(folder: Path) -> bool:
    return (folder / "pyvenv.cfg").exists()


def _digest(path: Path) -> str:
    try:
        return files.sha256(path.read_bytes())
    except OSError:
        return "unreadable"


def save_diff(root: Path, folder: Path) -> None:
    """Keep the uncommitted diff beside the logs, named by its hash, once."""
    diff = tools.git("diff", "HEAD", "--no-ext-diff", "--no-color", folder=root)
    if not diff:
        return
    path = folder / f"diff_{files.sha256(diff.encode())[:12]}.patch"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        files.write_atomic(path, diff.encode())


def versions() -> dict[str, str]:
    """Return the versions of Python, rlx and the packages that decide what a training computes."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "rlx": rlx.__version__}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
