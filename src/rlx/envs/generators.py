"""The process's global random generators, kept while somebody else's code runs."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator, Mapping
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

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> GlobalGenerators:
        """Return the moment that `document` describes."""
        torch, state = sys.modules.get("torch"), document["torch"]
        moment = torch.from_numpy(np.array(state)) if torch and state is not None else None
        return cls(document["python"], document["numpy"], moment)

    @staticmethod
    def seed(seed: int) -> None:
        """Start them all anew; torch's only where it is loaded."""
        random.seed(seed)
        np.random.seed(seed)
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(seed)

    def document(self) -> dict[str, Any]:
        """Return this moment as plain values and arrays."""
        return {
            "python": self.python,
            "numpy": self.numpy,
            "torch": None if self.torch is None else self.torch.numpy(),
        }

    def put_back(self) -> None:
        """Make them continue from that moment."""
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        if self.torch is not None:
            sys.modules["torch"].set_rng_state(self.torch)


@contextlib.contextmanager
def global_generators_kept() -> Iterator[GlobalGenerators]:
    """Leave the global random generators as they were."""
    kept = GlobalGenerators.now()
    try:
        yield kept
    finally:
        kept.put_back()
