"""What a machine has and what one seed may use of it: cores, GPUs, threads."""

from __future__ import annotations

import os
import re
from collections import Counter
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
    """How many seeds run side by side, and which GPUs they share."""

    seeds: int
    gpus: tuple[str, ...]
    seeds_a_gpu: int

    @classmethod
    def of(cls, config: dict[str, Any]) -> Slots:
        """Return the slots this machine has for a config's resources."""
        resources = config.get("resources", {})
        by_cores = max(1, available_cores() // int(resources.get("cores", 1)))
        by_memory = _by_memory(resources.get("memory"))
        gpus, share = _gpus_wanted(config)
        by_gpus = max(1, len(gpus)) * max(1, int(1 / share)) if share else by_cores
        return cls(max(1, min(by_cores, by_memory, by_gpus)), gpus, max(1, int(1 / share)) if share else 0)

    def has_room(self, busy: int) -> bool:
        return busy < self.seeds

    def free_gpu(self, taken: list[str | None]) -> str | None:
        """Return the GPU with the most room, or None where none is used."""
        if not self.gpus or not self.seeds_a_gpu:
            return None
        load = Counter(taken)
        return min(self.gpus, key=lambda gpu: load[gpu])


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


def _gpus_wanted(config: dict[str, Any]) -> tuple[tuple[str, ...], float]:
    """Return the GPUs and the share of one that a seed takes: one seed a GPU unless told."""
    device = str(config.get("device", "auto"))
    share = config.get("resources", {}).get("gpus")
    if share is None:
        share = 1.0 if device.startswith("cuda") else 0.0
    return (visible_gpus(), float(share)) if share else ((), 0.0)


def _by_memory(gigabytes: float | None) -> int:
    if gigabytes is None:
        return 1_000_000
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return max(1, int(total / gigabytes))


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
