"""The benchmark's own modules can be imported, as its scripts import them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parents[2] / "bench" / "diagnose"), str(Path(__file__).parents[2] / "bench")]
