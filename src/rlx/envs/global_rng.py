"""The process's global random generators, kept unchanged while foreign code runs."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlx.envs.remote.env_process import connected


@dataclass(frozen=True)
class GlobalGenerators:
    """The states of Python's, NumPy's and, if torch is loaded, torch's global generators at one moment.

    If environments run in another process, `environments` has the states of that process's generators, too.
    """

    python: Any
    numpy: Any
    torch: Any = None
    cuda: Any = ()
    environments: Any = None

    @classmethod
    def now(cls) -> GlobalGenerators:
        """Return the current states."""
        process = connected()
        environments = None if process is None else process.random_state()
        torch = sys.modules.get("torch")
        if torch is None:
            return cls(random.getstate(), np.random.get_state(), environments=environments)
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else ()
        return cls(random.getstate(), np.random.get_state(), torch.get_rng_state(), cuda, environments)

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> GlobalGenerators:
        """Return the states that `document` stored; torch's are ignored if torch is not loaded."""
        torch = sys.modules.get("torch")
        environments = document.get("environments")
        if torch is None or document["torch"] is None:
            return cls(document["python"], document["numpy"], environments=environments)
        cuda = [torch.from_numpy(np.array(state)) for state in document.get("cuda", ())]
        cpu = torch.from_numpy(np.array(document["torch"]))
        return cls(document["python"], document["numpy"], cpu, cuda, environments)

    @staticmethod
    def seed(seed: int) -> None:
        """Seed all of them."""
        random.seed(seed)
        np.random.seed(seed)
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(seed)
        if (process := connected()) is not None:
            process.seed_generators(seed)

    def document(self) -> dict[str, Any]:
        """Return the states as plain values and arrays."""
        document = {"python": self.python, "numpy": self.numpy, "torch": None}
        if self.torch is not None:
            document["torch"] = self.torch.numpy()
        if self.cuda:
            document["cuda"] = [state.numpy() for state in self.cuda]
        if self.environments is not None:
            document["environments"] = self.environments
        return document

    def put_back(self) -> None:
        """Make the generators continue from this moment."""
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        process = connected()
        if process is not None and self.environments is not None:
            process.set_random_state(self.environments)
        if self.torch is not None:
            torch = sys.modules["torch"]
            torch.set_rng_state(self.torch)
            if self.cuda and torch.cuda.is_available():
                torch.cuda.set_rng_state_all(self.cuda)


@contextlib.contextmanager
def global_generators_kept() -> Iterator[GlobalGenerators]:
    """Put the global generators back when the block ends; yields their states before it."""
    kept = GlobalGenerators.now()
    try:
        yield kept
    finally:
        kept.put_back()
