"""The project files that a config's training runs: what its environment, algorithm, policy and wrappers import.

This is the code identity of a run. A notebook helper that nobody imports does not belong to it. Model and library files
(`.xml`, `.urdf`, `.so` …) of the project always do, because an import does not name them.

Not covered: modules imported under a computed name, and data files of other kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlx import files
from rlx.evaluate.env_sources import files_behind
from rlx.runs import provenance
from rlx.runs.run import COMMAND_BACKEND

_NAME = re.compile(r"[\w./\\-]+\.py(:\w+)?|[A-Za-z_][\w.]*:[A-Za-z_]\w*")
"""`file.py`, `file.py:Class` or `module:Class`."""
SECTIONS = ("env", "eval", "algo", "policy")


def code_files(config: Mapping[str, Any], *, root: Path) -> dict[str, str] | None:
    """Return the hash of every project file that a config's training runs; None if only the whole project is known.

    That is the case for a training command, whose program may import anything.
    """
    if config.get("backend") == COMMAND_BACKEND or config.get("command"):
        return None
    names = dict.fromkeys(name for section in SECTIONS for name in _names(config.get(section)))
    hashes = {}
    for name in (*files_behind(names, root=root), *provenance.model_files(root)):
        path = root / name
        if path.is_file():
            hashes[name] = files.sha256(path.read_bytes())
    return hashes


def code_identity(config: Mapping[str, Any], *, root: Path) -> dict[str, Any]:
    """Return the fields of an attempt that say which code it runs; empty if only the whole project is known."""
    own = code_files(config, root=root)
    if own is None:
        return {}
    return {"code_files": own, "code_sha256": digest(own)}


def digest(own: Mapping[str, str]) -> str:
    """Return one hash over files and their hashes."""
    return files.sha256("\n".join(f"{name} {sha}" for name, sha in sorted(own.items())).encode())


def _names(value: object) -> Iterator[str]:
    """Yield every text in a section, as key or value, that names code."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _names(key)
            yield from _names(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _names(inner)
    elif isinstance(value, str) and _NAME.fullmatch(value):
        yield value
