"""The compute devices of this machine, found without importing torch (2 s).

Not covered: whether the installed torch was built for them; the backend finds that out.
"""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

SPELLING = re.compile(r"^(auto|cpu|mps|cuda(:[0-9]+)?)$")
_DRIVERS = ("/dev/nvidia0", "/dev/nvidiactl", "/proc/driver/nvidia/version", "/dev/dxg", "/dev/kfd")  # + WSL, ROCm


def present() -> frozenset[str]:
    """Return the kinds of devices: `cpu`, and `cuda` or `mps` if there are any."""
    kinds = {"cpu"}
    if os.environ.get("CUDA_VISIBLE_DEVICES") not in ("", "-1") and any(Path(driver).exists() for driver in _DRIVERS):
        kinds.add("cuda")
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        kinds.add("mps")
    return frozenset(kinds)
