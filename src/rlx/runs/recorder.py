"""Writes down which modules a Python process loaded, when it ends; programs without rlx have it as `sitecustomize`.

It needs nothing but the standard library of Python 3.7, and steps aside for the `sitecustomize` that is there.
What is not covered: a process that is killed or leaves by `os._exit`, and code that wants to hide what it loaded.
"""

from __future__ import annotations

import atexit
import os
import sys

FOLDER, ROOT = "RLX_LOADED", "RLX_LOADED_ROOT"
"""The variables that name the folder to write into, and the project: files of it are named from there."""
MOST_FILES = 200
LARGEST = 16 * 2**20
PACKAGES = ("site-packages", "dist-packages")


def modules() -> dict[str, dict[str, str | None]]:
    """Return file and hash of every module that is no part of Python; of installed packages the file alone."""
    standard = os.path.realpath(os.path.dirname(os.__file__)) + os.sep  # noqa: PTH120
    found: dict[str, dict[str, str | None]] = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str):
            continue
        file = os.path.realpath(file)
        is_installed = any(os.sep + folder + os.sep in file for folder in PACKAGES)
        if file.startswith(standard) and not is_installed:
            continue
        spec = getattr(module, "__spec__", None)
        known = spec.name if name == "__main__" and spec is not None else name
        found[known] = {"file": file, "sha256": None if is_installed else digest(file)}
    return found


def digest(file: str) -> str | None:
    """Return the sha256 of a file; None where it cannot be read."""
    import hashlib

    try:
        if not os.path.isfile(file):  # noqa: PTH113  a pipe would be waited for
            return None
        with open(file, "rb") as stream:  # noqa: PTH123
            content = stream.read(LARGEST + 1)
    except OSError:
        return None
    return hashlib.sha256(content).hexdigest() if len(content) <= LARGEST else None


def placed(found: dict[str, dict[str, str | None]], root: str) -> dict[str, dict[str, str | None]]:
    """Name the files of a project from its root, so that it may be moved; others keep their whole path."""
    top = os.path.realpath(root) + os.sep
    return {name: dict(one, file=str(one["file"])[len(top) :] if str(one["file"]).startswith(top) else one["file"])
            for name, one in found.items()}  # fmt: skip


def write(folder: str, root: str | None = None) -> None:
    """Write what this process has loaded into a file of its own; a program must not fail for it."""
    import json

    try:
        if len(os.listdir(folder)) >= MOST_FILES:  # noqa: PTH208
            return
        row = {"schema": 1, "pid": os.getpid(), "argv": list(sys.argv),
               "modules": placed(modules(), root) if root else modules()}  # fmt: skip
        name = f"{os.getpid()}_{os.urandom(4).hex()}.json"
        temporary = os.path.join(folder, "." + name)  # noqa: PTH118
        with open(temporary, "w", encoding="utf-8", errors="backslashreplace") as stream:  # noqa: PTH123
            json.dump(row, stream)
        os.replace(temporary, os.path.join(folder, name))  # noqa: PTH118
    except OSError:
        pass


def chain() -> None:
    """Run the `sitecustomize` that this one stands before."""
    import importlib.machinery
    import importlib.util

    here = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120
    rest = [path for path in sys.path if os.path.realpath(path or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    if os.environ.get(FOLDER):
        atexit.register(write, os.environ[FOLDER], os.environ.get(ROOT))
    chain()
