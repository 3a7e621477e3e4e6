"""The files of a job's folder that tell whether it waits in an executor's queue.

Executors write them (`launch.executors`). A list of runs only reads them: it never asks a scheduler.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlx import files

LOCAL = "local"
"""The executor of a task that names none: this machine."""
PLACE = Path(".rlx") / "jobs"
PROCESS = "process.json"
EXIT = "exit.json"
SUBMITTED = "submitted.json"
CANCELLED = "cancelled"
FORGOTTEN = "forgotten"
"""The scheduler was asked, and does not have the job any more. The job may still start if that was wrong."""


def is_waiting(folder: Path) -> bool:
    """Say whether a job was submitted, has not started, and nothing says that it never will."""
    if not (folder / SUBMITTED).exists():
        return False
    return not any((folder / name).exists() for name in (PROCESS, EXIT, CANCELLED, FORGOTTEN))


def waiting_jobs(project: Path, document: Any) -> int:
    """Count the jobs of a run's `jobs.json` that wait in a queue."""
    if not isinstance(document, dict) or not isinstance(document.get("jobs"), dict):
        return 0
    ids = {id for id in document["jobs"].values() if isinstance(id, str) and id == Path(id).name}
    return sum(is_waiting(project / PLACE / id) for id in ids)


def read_jobs(path: Path) -> Any:
    """Return a run's `jobs.json`; None if it has none, or an empty mapping if it cannot be read."""
    try:
        return files.read_json(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return {}
