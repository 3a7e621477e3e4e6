"""What a machine has and what one seed may use of it: cores, GPUs, threads."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx.launch.interpreter import lasting_environment

# SDL takes SIGTERM away from a process that has rendered with pygame; see docs/concepts/runs.md.
QUIET_VARIABLES = {
    "SDL_NO_SIGNAL_HANDLERS": "1",
    "SDL_VIDEODRIVER": "dummy",
    "SDL_AUDIODRIVER": "dummy",
    "PYGAME_HIDE_SUPPORT_PROMPT": "1",
}
IMPORT_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "LD_PRELOAD", "LD_AUDIT")
"""What changes which code a program loads; empty is as good as unset."""


@dataclass(frozen=True)
class Slots:
    """Places for seeds side by side; each names the GPUs that its seed has, None where it uses none."""

    places: tuple[str | None, ...]

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Slots:
        """Return the places that this machine has for a config's resources: one at least."""
        resources = config.get("resources", {})
        share = _gpu_share(config)
        gpus = gpu_places(share) or (None,)
        by_cores, by_memory = core_places(int(resources.get("cores", 1))), memory_places(resources.get("memory"))
        count = int(max(1, min(by_cores, by_memory, len(gpus) if share else by_cores)))
        return cls(gpus[:count] if share else (None,) * count)

    def without(self, taken: Sequence[str | None]) -> Slots:
        """Return the places that are left beside those that are taken."""
        left = list(self.places)
        for place in taken[: len(left)]:
            left.remove(place if place in left else left[-1])
        return Slots(tuple(left))


def available_cores() -> int:
    """Return the cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def visible_gpus() -> tuple[str, ...]:
    """Return the CUDA devices this process may use, without importing torch."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is not None:
        return tuple(part.strip() for part in listed.split(",") if part.strip() not in ("", "-1"))
    devices = sorted(Path("/dev").glob("nvidia[0-9]*"), key=lambda path: int(re.sub(r"\D", "", path.name)))
    return tuple(str(number) for number in range(len(devices)))


def core_places(cores: int) -> int:
    """Return for how many seeds of so many cores this machine has room."""
    return available_cores() // cores


def gpu_places(share: float) -> tuple[str, ...]:
    """Return the GPUs of every seed that this machine has room for: several of a share each, or several a seed."""
    gpus = visible_gpus()
    if share <= 1:
        return gpus * int(1 / share) if share else ()
    size = math.ceil(share)
    return tuple(",".join(gpus[first : first + size]) for first in range(0, len(gpus) - size + 1, size))


def _gpu_share(config: Mapping[str, Any]) -> float:
    """Return how many GPUs a seed takes: one unless told, none on other devices."""
    share = config.get("resources", {}).get("gpus")
    if share is None:
        share = 1.0 if str(config.get("device", "auto")).startswith("cuda") else 0.0
    return float(share)


def memory_places(gigabytes: float | None) -> float:
    """Return for how many seeds of so much memory this machine has room."""
    if gigabytes is None:
        return math.inf
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30 // gigabytes


def oom_kills() -> int | None:
    """Return how many processes this machine's kernel has killed for want of memory; None where it does not say."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)


def worker_environment(config: dict[str, Any], *, root: Path, gpu: str | None) -> dict[str, str]:
    """Return the environment of one seed's process: pinned threads, headless, one GPU."""
    environment = {**os.environ, **QUIET_VARIABLES, **lasting_environment(config), "RLX_ROOT": str(root)}
    if gpu is not None:
        environment["CUDA_VISIBLE_DEVICES"] = gpu
    return environment


def neutral_environment() -> dict[str, str]:
    """Return the variables that keep a study's job from importing what its launcher's shell names; rlx stays."""
    own = str(Path(__file__).parents[2])
    listed = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return {**dict.fromkeys(IMPORT_VARIABLES, ""), "PYTHONPATH": own if own in listed else ""}
