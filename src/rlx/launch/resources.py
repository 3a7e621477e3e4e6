"""What this machine has, and what one seed may use of it: cores, GPUs, memory, threads."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx.launch.processes.reexec import THREAD_VARIABLES, lasting_environment

# SDL takes SIGTERM away from a process that has rendered with pygame; see docs/concepts/runs.md.
QUIET_VARIABLES = {
    "SDL_NO_SIGNAL_HANDLERS": "1",
    "SDL_VIDEODRIVER": "dummy",
    "SDL_AUDIODRIVER": "dummy",
    "PYGAME_HIDE_SUPPORT_PROMPT": "1",
}
# The variables that change which code a program loads; empty is as good as unset.
IMPORT_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "LD_PRELOAD", "LD_AUDIT")

# The variables that a study's job may have. None holds a secret, and none names code: LD_LIBRARY_PATH, SDL_DYNAMIC_API,
# CUDA_INJECTION64_PATH and OMP_TOOL_LIBRARIES do, so no family of names is allowed as a whole.
JOB_VARIABLES = frozenset({
    "PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_NUMERIC", "LC_TIME", "LC_MESSAGES", "TERM", "TZ",
    "VIRTUAL_ENV", "RLX_ROOT", "PYTHONUNBUFFERED", "PYTHONHASHSEED", "MUJOCO_GL", "PYOPENGL_PLATFORM",
    *QUIET_VARIABLES, *THREAD_VARIABLES, "OMP_PROC_BIND", "OMP_PLACES", "OMP_WAIT_POLICY", "OPENBLAS_CORETYPE",
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_TF32_OVERRIDE", "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES", "XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION", "JAX_PLATFORMS",
    "JAX_ENABLE_X64",
})  # fmt: skip
# The supervisor of a study's job also needs these. It runs no code of a candidate.
SUPERVISOR_VARIABLES = frozenset({"HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "RLX_JOB", "RLX_PAUSE_STEP"})


@dataclass(frozen=True)
class Slots:
    """Places for seeds that train at the same time; each names the GPUs of its seed, or None if it uses no GPU."""

    places: tuple[str | None, ...]

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Slots:
        """Return the places that this machine has for a config's resources: at least one."""
        resources = config.get("resources", {})
        by_cores = core_places(int(resources.get("cores", 1)))
        count = int(max(1, min(by_cores, memory_places(resources.get("memory")))))
        share = gpu_share(config)
        if not share:
            return cls((None,) * count)
        return cls(gpu_places(share)[:count] or (None,))

    def without(self, taken: Sequence[str | None]) -> Slots:
        """Return the places that are free if these are taken."""
        left = list(self.places)
        for place in taken[: len(left)]:
            left.remove(place if place in left else left[-1])
        return Slots(tuple(left))


def available_cores() -> int:
    """Return the cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def visible_gpus() -> tuple[str, ...]:
    """Return the CUDA devices this process may use, without importing torch."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is not None:
        return tuple(part.strip() for part in listed.split(",") if part.strip() not in ("", "-1"))
    devices = sorted(Path("/dev").glob("nvidia[0-9]*"), key=lambda path: int(re.sub(r"\D", "", path.name)))
    return tuple(str(number) for number in range(len(devices)))


def core_places(cores: int) -> int:
    """Return how many seeds with so many cores fit on this machine."""
    return available_cores() // cores


def gpu_places(share: float) -> tuple[str, ...]:
    """Return the GPUs of every seed that fits on this machine: seeds that share a GPU, or several GPUs per seed."""
    gpus = visible_gpus()
    if not share:
        return ()
    if share <= 1:
        return gpus * int(1 / share)
    size = math.ceil(share)
    return tuple(",".join(gpus[first : first + size]) for first in range(0, len(gpus) - size + 1, size))


def gpu_share(config: Mapping[str, Any]) -> float:
    """Return how many GPUs a seed uses: one by default, none on other devices."""
    share = config.get("resources", {}).get("gpus")
    if share is None:
        return float(str(config.get("device", "auto")).startswith("cuda"))
    return float(share)


def memory_places(gigabytes: float | None) -> float:
    """Return how many seeds with so much memory fit on this machine."""
    if gigabytes is None:
        return math.inf
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30 // gigabytes


def oom_kills() -> int | None:
    """Return how many processes the kernel has killed because memory ran out; None if it does not tell."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)


def worker_environment(config: dict[str, Any], *, root: Path, gpu: str | None) -> dict[str, str]:
    """Return the environment variables of one seed's process: fixed threads, headless, one GPU."""
    environment = {**os.environ, **QUIET_VARIABLES, **lasting_environment(config), "RLX_ROOT": str(root)}
    if gpu is not None:
        environment["CUDA_VISIBLE_DEVICES"] = gpu
    return environment


PAUSE_VARIABLE = "RLX_PAUSE_STEP"


def pause_environment(step: int | None) -> dict[str, str]:
    """Return the variable that makes workers pause their seeds at a step; empty clears one that is inherited."""
    if step is None:
        return {PAUSE_VARIABLE: ""}
    return {PAUSE_VARIABLE: str(step)}


def pause_step() -> int | None:
    """Return the step at which this worker pauses its seeds, if there is one."""
    text = os.environ.get(PAUSE_VARIABLE, "")
    if not text:
        return None
    return int(text)


def job_environment(usual: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a study's job may have: those of a list."""
    return {name: value for name, value in usual.items() if name in JOB_VARIABLES}


def supervisor_environment(usual: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the supervisor of a study's job.

    Workers are forked from it, and the kernel keeps what a process was started with: in `/proc`, and in the search path
    for shared libraries.
    """
    environment = job_environment(usual)
    environment |= {name: value for name, value in usual.items() if name in SUPERVISOR_VARIABLES}
    own = neutral_environment()["PYTHONPATH"]
    if own:
        environment["PYTHONPATH"] = own
    return environment


def neutral_environment() -> dict[str, str]:
    """Return the variables that keep a study's job from importing code that the launching shell names, except rlx."""
    environment = dict.fromkeys(IMPORT_VARIABLES, "")
    own = str(Path(__file__).parents[2])
    if own in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        environment["PYTHONPATH"] = own
    return environment
