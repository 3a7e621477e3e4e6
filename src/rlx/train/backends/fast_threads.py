"""One thread for NumPy's matrix products: two round differently, and matrices this small only lose by them."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

SETTERS = ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads64_",
           "openblas_set_num_threads")  # fmt: skip


def use_one_thread() -> None:
    """Tell the OpenBLAS that came with NumPy; another library goes by the variables a worker is started with."""
    package = Path(np.__file__).parent
    for library in (*package.parent.glob("numpy.libs/*openblas*"), *package.glob(".dylibs/*openblas*")):
        loaded = ctypes.CDLL(str(library))
        for name in SETTERS:
            if hasattr(loaded, name):
                getattr(loaded, name)(1)
