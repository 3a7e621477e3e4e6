"""The environment variables of an evaluation's processes."""

from __future__ import annotations

import sys
from pathlib import Path


def plain_environment() -> dict[str, str]:
    """Return the variables of an evaluation: nothing of ours, one thread, nothing drawn."""
    threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        **dict.fromkeys(threads, "1"),
        "SDL_VIDEODRIVER": "dummy",
        "SDL_AUDIODRIVER": "dummy",
        "SDL_NO_SIGNAL_HANDLERS": "1",
        "PYGAME_HIDE_SUPPORT_PROMPT": "1",
    }
