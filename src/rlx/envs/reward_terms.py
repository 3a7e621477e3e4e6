"""Reward terms from infos: those of one step, and sums over many steps of a vector environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

TERMS = "reward_terms"


def terms_of(info: Mapping[str, Any]) -> dict[str, float]:
    """Return the reward terms that a single step's info reports; values that are not one number are left out."""
    terms = info.get(TERMS)
    if not isinstance(terms, Mapping):
        return {}
    return {str(name): float(value) for name, value in terms.items() if _is_number(value)}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) or (isinstance(value, np.ndarray) and value.ndim == 0)


class TermSums:
    """Sums of every term and of its absolute value since the last row; a step without a term counts as 0."""

    def __init__(self) -> None:
        self._since = 0
        self._sums: dict[str, list[float]] = {}

    def add(self, infos: Mapping[str, Any], ended: NDArray[np.bool_], idle: NDArray[np.bool_] | None = None) -> None:
        """Add a step. An episode that ended reports its final info; an `idle` environment reports nothing."""
        final = infos.get("final_info")
        is_real = np.ones_like(ended)
        if idle is not None:
            is_real = ~idle
        is_running = is_real
        if final is not None:
            is_running = is_real & ~ended
        if TERMS in infos:
            self._add(infos, is_running)
        if isinstance(final, Mapping) and TERMS in final:
            self._add(final, is_real & ended)

    def read(self, step: int) -> dict[str, float]:
        """Return means per step since the last call; a term that is no longer reported is 0, not absent."""
        steps = max(step - self._since, 1)
        row = {f"reward/term/{name}": total / steps for name, (total, _) in self._sums.items()}
        row |= {f"reward/term_abs/{name}": size / steps for name, (_, size) in self._sums.items()}
        self._since = step
        self._sums = {name: [0.0, 0.0] for name in self._sums}
        return row

    def document(self) -> dict[str, Any]:
        """Return everything in the form that a checkpoint stores."""
        return {"since": self._since, "sums": {name: list(sums) for name, sums in self._sums.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `document` returned."""
        self._since = state["since"]
        self._sums = {name: list(sums) for name, sums in state["sums"].items()}

    def _add(self, infos: Mapping[str, Any], which: NDArray[np.bool_]) -> None:
        for name, values in _reported(infos, which):
            sums = self._sums.setdefault(name, [0.0, 0.0])
            sums[0] += float(values.sum())
            sums[1] += float(np.abs(values).sum())


def _reported(infos: Mapping[str, Any], which: NDArray[np.bool_]) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield every term and its values in `which` environments; terms that are not one number are left out."""
    terms = infos[TERMS]
    which = which & infos.get(f"_{TERMS}", True)
    if not isinstance(terms, Mapping):
        return
    for name, values in terms.items():
        array = np.asarray(values)
        is_mask = name.startswith("_") and name[1:] in terms
        if is_mask or array.shape != which.shape or array.dtype.kind not in "bif":
            continue
        yield str(name), array[which & terms.get(f"_{name}", True)].astype(np.float64)
