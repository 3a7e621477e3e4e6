"""Finds how trainings are launched: Slurm, torchrun, tmux, Ray, or Docker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from rlx.adopt.repository import ForeignRepository
from rlx.adopt.scan_fact import ScanFact

_MARKS = (
    ("slurm", re.compile(r"^#SBATCH|\bsbatch\b|\bsrun\b", re.M)),
    ("torchrun", re.compile(r"\btorchrun\b|torch\.distributed\.(run|launch)\b")),
    ("tmux", re.compile(r"\btmux\b")),
    ("accelerate", re.compile(r"\baccelerate launch\b")),
    ("ray", re.compile(r"\bray (job )?submit\b|ray start")),
)
_SHELL = (".sh", ".sbatch", ".slurm", ".bash", ".sub")
MOST_PAGES = 200


def launchers(repository: ForeignRepository) -> Iterator[ScanFact]:
    """Yield the launchers that scripts, the documentation and Hydra configs name; `local` if there is none."""
    pages = [path for path in repository.files if _is_page(path)][:MOST_PAGES]
    seen: set[str] = set()
    for path in pages:
        text = repository.text(path)
        for name, mark in _MARKS:
            match = mark.search(text)
            if match and name not in seen:
                seen.add(name)
                confidence = "high" if path.endswith(_SHELL) else "medium"
                line = text.count("\n", 0, match.start()) + 1
                yield ScanFact("launcher", name, path, line, confidence=confidence)  # type: ignore[arg-type]
    for file in repository.programs:
        for module in ("submitit", "torch.distributed"):
            if module in file.imports and module not in seen:
                seen.add(module)
                name = {"submitit": "slurm", "torch.distributed": "torchrun"}[module]
                if name not in seen:
                    yield ScanFact("launcher", name, file.path, file.imports[module], confidence="medium")


_SOCKETS = ("SubprocVecEnv", "AsyncVectorEnv", "ShmemVectorEnv", "init_process_group", "forkserver", "get_context")


def local_sockets(repository: ForeignRepository) -> Iterator[ScanFact]:
    """Yield the first places at which processes connect to each other, which needs sockets in the sandbox."""
    for file in repository.programs:
        for word in _SOCKETS:
            at = file.text.find(word)
            if at >= 0:
                line = file.text.count("\n", 0, at) + 1
                yield ScanFact("local sockets", word, file.path, line, "medium")
                return


def _is_page(path: str) -> bool:
    name = PurePosixPath(path).name.lower()
    if path.endswith(_SHELL):
        return True
    is_config = path.endswith((".yaml", ".yml")) and "launcher" in path
    return is_config or (name.startswith("readme") and path.count("/") < 3)
