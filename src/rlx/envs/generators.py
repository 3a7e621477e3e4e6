"""The process's global random generators, kept while somebody else's code runs."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class GlobalGenerators:
    """Python's, NumPy's and torch's global random generators at one moment."""

    python: Any
    numpy: Any
    torch: Any

    @classmethod
    def now(cls) -> GlobalGenerators:
        """Read them; torch's only where it is loaded."""
        torch = sys.modules.get("torch")
        return cls(random.getstate(), np.random.get_state(), torch.get_rng_state() if torch else None)

    def put_back(self) -> None:
        """Make them continue from that moment."""
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        if self.torch is not None:
            sys.modules["torch"].set_rng_state(self.torch)


@contextlib.contextmanager
def global_generators_kept() -> Iterator[None]:
    """Leave the global random generators as they were."""
    kept = GlobalGenerators.now()
    try:
        yield
    finally:
        kept.put_back()
