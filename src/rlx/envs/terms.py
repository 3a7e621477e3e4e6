"""Reward terms out of a vector environment's infos, summed up until they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

TERMS = "reward_terms"


class TermSums:
    """Sums of every term and of its size since a row was last made of them; a step without a term counts as 0."""

    def __init__(self) -> None:
        self._since = 0
        self._sums: dict[str, list[float]] = {}

    def add(self, infos: Mapping[str, Any], ended: NDArray[np.bool_], idle: NDArray[np.bool_] | None = None) -> None:
        """Take a step in; where an episode ended, its own last info counts; an `idle` environment reports nothing."""
        final = infos.get("final_info")
        real = np.ones_like(ended) if idle is None else ~idle
        if TERMS in infos:
            self._add(infos, real if final is None else real & ~ended)
        if isinstance(final, Mapping) and TERMS in final:
            self._add(final, real & ended)

    def read(self, step: int) -> dict[str, float]:
        """Return means a step since the last call; a term that is not reported any more is 0, not absent."""
        steps = max(step - self._since, 1)
        row = {f"reward/term/{name}": total / steps for name, (total, _) in self._sums.items()}
        row |= {f"reward/term_abs/{name}": size / steps for name, (_, size) in self._sums.items()}
        self._since, self._sums = step, {name: [0.0, 0.0] for name in self._sums}
        return row

    def document(self) -> dict[str, Any]:
        """Return everything as a checkpoint keeps it."""
        return {"since": self._since, "sums": {name: list(each) for name, each in self._sums.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put back what `document` returned."""
        self._since, self._sums = state["since"], {name: list(each) for name, each in state["sums"].items()}

    def _add(self, infos: Mapping[str, Any], which: NDArray[np.bool_]) -> None:
        for name, values in _reported(infos, which):
            sums = self._sums.setdefault(name, [0.0, 0.0])
            sums[0] += float(values.sum())
            sums[1] += float(np.abs(values).sum())


def _reported(infos: Mapping[str, Any], which: NDArray[np.bool_]) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield every term and its values in `which` environments; what is not one number a term is none."""
    terms, mask = infos[TERMS], infos.get(f"_{TERMS}")
    which = which if mask is None else which & mask
    if not isinstance(terms, Mapping):
        return
    for name, values in terms.items():
        array = np.asarray(values)
        is_mask = name.startswith("_") and name[1:] in terms
        if is_mask or array.shape != which.shape or array.dtype.kind not in "bif":
            continue
        reported = terms.get(f"_{name}")
        yield str(name), array[which if reported is None else which & reported].astype(np.float64)
